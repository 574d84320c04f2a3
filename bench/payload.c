/* SPDX-License-Identifier: Apache-2.0 */
/* What a job of bench/mixed-day does: a set share of CPU and a set amount of memory, for a set time, and a result that
 * only who has done all of it, with its memory as it was, can know.
 *
 *   payload SECONDS STEPS MIB SEED     as a job does: prints how far it is, and at the end "result HASH"
 *   payload --expect SECONDS STEPS MIB SEED     only the last line, without a pause
 *
 * Time is in ticks of 200 ms. In each it takes STEPS steps of a chain of hashes that runs through its memory, reading
 * and writing, and naps for the rest. A second that it is late, as its CPU had others to serve, it makes up for in the ticks
 * that follow; what is beyond, as it got less CPU than it wants or stood still, makes it end later. Of its memory it holds half in the first quarter of
 * its time, more and more in the second, all in the third, and half in the last. What it gives back goes into the hash
 * before. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <time.h>

#define TICKS_PER_SEC   5u
#define TICK_NSEC       (1000000000L / TICKS_PER_SEC)
#define PAGE            4096u
#define PAGES_PER_MIB   256u
#define WORDS_PER_PAGE  (PAGE / sizeof(uint64_t))
#define ROUNDS_PER_STEP 1000u
#define OWED_SEC_MAX    1
#define SAY_TICKS       (5 * TICKS_PER_SEC)

static struct {
    uint64_t *words;
    size_t n_pages; /* held */
    uint64_t chain, seed;
} payload;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* The finaliser of SplitMix64 (Steele et al., OOPSLA 2014). */
static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint64_t *word_of(size_t page)
{
    return &payload.words[page * WORDS_PER_PAGE + page % WORDS_PER_PAGE];
}

static void hold(size_t n_pages)
{
    while (payload.n_pages < n_pages) {
        *word_of(payload.n_pages) = mix(payload.seed + payload.n_pages);
        payload.n_pages++;
    }
    if (payload.n_pages == n_pages)
        return;
    size_t n = payload.n_pages - n_pages;
    for (size_t page = n_pages; page < payload.n_pages; page++)
        payload.chain = mix(payload.chain ^ *word_of(page));
    if (madvise(&payload.words[n_pages * WORDS_PER_PAGE], n * PAGE, MADV_DONTNEED) != 0)
        die("payload: madvise");
    payload.n_pages = n_pages;
}

static void step(void)
{
    uint64_t chain = payload.chain;
    for (unsigned i = 0; i < ROUNDS_PER_STEP; i++)
        chain = mix(chain + i);
    if (payload.n_pages > 0) {
        uint64_t *word = word_of(chain % payload.n_pages);
        chain ^= *word;
        *word = mix(chain);
    }
    payload.chain = chain;
}

static void nap_until(struct timespec *due)
{
    due->tv_nsec += TICK_NSEC;
    if (due->tv_nsec >= 1000000000L) {
        due->tv_nsec -= 1000000000L;
        due->tv_sec++;
    }
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, due, NULL) == EINTR)
        ;
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    now.tv_sec -= OWED_SEC_MAX;
    if (now.tv_sec > due->tv_sec || (now.tv_sec == due->tv_sec && now.tv_nsec > due->tv_nsec))
        *due = now;
}

/* Of N_PAGES, in this tick of all. */
static size_t held_at(uint64_t tick, uint64_t ticks, size_t n_pages)
{
    uint64_t quarter = ticks / 4, least = n_pages / 2;
    if (tick < quarter || tick >= ticks - quarter)
        return least;
    return least + MIN((tick - quarter) * (n_pages - least) / quarter, n_pages - least);
}

static void run(uint64_t ticks, uint64_t steps, size_t n_pages, bool naps)
{
    struct timespec due;
    (void)clock_gettime(CLOCK_MONOTONIC, &due);
    for (uint64_t tick = 0; tick < ticks; tick++) {
        hold(held_at(tick, ticks, n_pages));
        for (uint64_t i = 0; i < steps; i++)
            step();
        if (!naps)
            continue;
        if (tick % SAY_TICKS == 0)
            (void)printf("%" PRIu64 " of %" PRIu64 ": %016" PRIx64 "\n", tick / TICKS_PER_SEC,
                         ticks / TICKS_PER_SEC, payload.chain);
        nap_until(&due);
    }
    hold(0);
}

static uint64_t number(const char *text)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value > UINT32_MAX) {
        (void)fprintf(stderr, "payload: '%s' is no number\n", text);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    bool expects = argc > 1 && strcmp(argv[1], "--expect") == 0;
    if (argc != 5 + expects) {
        (void)fputs("usage: payload [--expect] SECONDS STEPS MIB SEED\n", stderr);
        return 2;
    }
    char **values = argv + 1 + expects;
    uint64_t seconds = number(values[0]), steps = number(values[1]), mib = number(values[2]);
    payload.chain = payload.seed = number(values[3]);
    size_t size = (size_t)mib * PAGES_PER_MIB * PAGE;
    payload.words = mmap(NULL, size > 0 ? size : PAGE, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (payload.words == MAP_FAILED)
        die("payload: mmap");
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    run(seconds * TICKS_PER_SEC, steps, (size_t)mib * PAGES_PER_MIB, !expects);
    (void)printf("result %016" PRIx64 "\n", payload.chain);
    return 0;
}
