/* SPDX-License-Identifier: Apache-2.0 */
/* submit COUNT PAUSE_MSEC SCRIPT: submits COUNT jobs that run the file SCRIPT, one after the other with a pause between two.
 * Says "ready" when it could begin, and begins when its standard input ends or has a line. Then prints, of each: its number, when it
 * began to submit it, in microseconds since 1970, and how many microseconds it took. No GLib: Slurm's client has none either. */
#include "bench/submit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SCRIPT_MAX 4096

typedef struct {
    uint64_t job;
    int64_t began_usec, took_usec;
} Submission;

static int64_t now_usec(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static bool read_script(const char *path, char *out_text)
{
    FILE *file = fopen(path, "r");
    size_t length = file == NULL ? 0 : fread(out_text, 1, SCRIPT_MAX - 1, file);
    out_text[length] = '\0';
    if (file == NULL)
        perror(path);
    else
        (void)fclose(file);
    return length > 0;
}

static bool submit(Submission *out_submission)
{
    int64_t began_usec = now_usec(CLOCK_MONOTONIC);
    out_submission->began_usec = now_usec(CLOCK_REALTIME);
    out_submission->job = submitter_submit();
    out_submission->took_usec = now_usec(CLOCK_MONOTONIC) - began_usec;
    return out_submission->job != 0;
}

static void take_a_break(long msec)
{
    struct timespec pause = {.tv_sec = msec / 1000, .tv_nsec = msec % 1000 * 1000000};
    if (msec > 0)
        (void)nanosleep(&pause, NULL);
}

int main(int argc, char **argv)
{
    static char script[SCRIPT_MAX];
    long count = argc == 4 ? strtol(argv[1], NULL, 10) : 0;
    if (count < 1) {
        fprintf(stderr, "usage: submit COUNT PAUSE_MSEC SCRIPT\n");
        return 2;
    }
    long pause_msec = strtol(argv[2], NULL, 10);
    Submission *all = calloc((size_t)count, sizeof *all);
    if (all == NULL || !read_script(argv[3], script) || !submitter_open(script))
        return 1;
    puts("ready");
    (void)fflush(stdout);
    (void)getchar();
    long done = 0;
    while (done < count && submit(&all[done])) {
        done++;
        take_a_break(pause_msec);
    }
    for (long i = 0; i < done; i++)
        printf("%llu %lld %lld\n", (unsigned long long)all[i].job, (long long)all[i].began_usec,
               (long long)all[i].took_usec);
    free(all);
    return done == count ? 0 : 1;
}
