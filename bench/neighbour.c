/* SPDX-License-Identifier: Apache-2.0 */
/* The jobs of bench/neighbours, static, for a guest with nothing else:
 *
 *   neighbour rate            works in pieces of a fixed size for ever, and prints "MICROSECONDS PIECES" of the guest's clock four
 *                             times a second
 *   neighbour grow MIB CPUS [MIB_PER_SEC]
 *                             the same, but rests for three quarters of the time; when the file /dev/shm/grow appears it rests no
 *                             more and takes MIB, no faster than that, which it keeps and changes, and works with CPUS threads
 *                             when it has it, and says how many microseconds it took
 *   neighbour allocate MIB    takes MIB as fast as it can, gives it back, and so on
 *   neighbour dirty MIB       takes MIB, and writes into each page of it, round and round
 *   neighbour flood           writes to standard output as fast as it can
 *   neighbour lie MIB         has /proc/meminfo say that it uses nothing, and /proc/pressure likewise, takes MIB, and works
 *
 * What they do to memory is verified: a page that is not what was written last ends the program with 9. */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PAGE          4096u
#define PAGES_PER_MIB 256u
#define PIECE_STEPS   20000u
#define TELL_USEC     250000
#define GROW_FILE     "/dev/shm/grow"
#define FLOOD_BYTES   65536u
#define CHANGED_PAGES 64u /* of a piece of work with memory */
#define WORK_USEC     10000
#define REST_USEC     30000 /* after that */

static _Thread_local volatile uint64_t sink;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static int64_t now_usec(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void work_a_piece(void)
{
    uint64_t state = sink | 1;
    for (unsigned i = 0; i < PIECE_STEPS; i++) { /* xorshift64, Marsaglia 2003 */
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    sink = state;
}

/* --- memory ----------------------------------------------------------------------------------- */

typedef struct {
    uint8_t *pages;
    size_t n, next;
    uint64_t round;
} Memory;

static Memory memory_take(size_t mib)
{
    Memory memory = {.n = mib * PAGES_PER_MIB, .round = 1};
    memory.pages =
        mmap(NULL, memory.n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory.pages == MAP_FAILED)
        die("mmap");
    return memory;
}

static void memory_give(Memory *memory)
{
    (void)munmap(memory->pages, memory->n * PAGE);
}

/* The next page has what the round before wrote there, and gets this round's. */
static void memory_change_next(Memory *memory)
{
    uint64_t *page = (uint64_t *)(void *)(memory->pages + memory->next * PAGE);
    uint64_t before = memory->round == 1 ? 0 : memory->round - 1 + memory->next;
    if (page[0] != before || page[PAGE / 8 - 1] != before) {
        printf("page %zu is damaged\n", memory->next);
        fflush(stdout);
        _exit(9);
    }
    page[0] = page[PAGE / 8 - 1] = memory->round + memory->next;
    if (++memory->next == memory->n) {
        memory->next = 0;
        memory->round++;
    }
}

static void memory_fill(Memory *memory)
{
    uint64_t round = memory->round;
    while (memory->round == round)
        memory_change_next(memory);
}

/* --- jobs ------------------------------------------------------------------------------------- */

/* What the other threads of this job have worked. */
static _Atomic uint64_t others_pieces;

static void *work_beside(void *unused)
{
    for (;;) {
        work_a_piece();
        atomic_fetch_add(&others_pieces, 1);
    }
    return unused;
}

static void start_others(unsigned cpus)
{
    for (unsigned i = 1; i < cpus; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work_beside, NULL) != 0)
            die("pthread_create");
    }
}

typedef struct {
    Memory memory;         /* pages NULL: there is nothing to be taken yet */
    int64_t began_usec;    /* to take it */
    int64_t pages_per_sec; /* 0: as fast as it can */
    bool is_grown;
} Growth;

static bool is_ahead(const Growth *growth)
{
    int64_t usec = now_usec() - growth->began_usec;
    return !growth->is_grown && growth->pages_per_sec > 0 &&
           (int64_t)growth->memory.next > usec * growth->pages_per_sec / 1000000;
}

/* Some pages with each piece of work. Other CPUs come in when all of them are there: emulated vCPUs stand still together
 * for each page that is mapped, so that memory would be taken at the pace at which the host's CPUs are given to all
 * of them at a time. */
static void grow_on(Growth *growth, unsigned cpus)
{
    if (is_ahead(growth))
        return;
    for (unsigned i = 0; i < CHANGED_PAGES; i++)
        memory_change_next(&growth->memory);
    if (growth->is_grown || growth->memory.round == 1)
        return;
    growth->is_grown = true;
    printf("grown after %" PRId64 "\n", now_usec() - growth->began_usec);
    start_others(cpus);
}

static void rest_if_due(int64_t *rested_usec, int64_t now)
{
    if (now - *rested_usec < WORK_USEC)
        return;
    (void)usleep(REST_USEC);
    *rested_usec = now_usec();
}

/* MIB and CPUS: to be taken when GROW_FILE appears; 0 = never. MIB_PER_SEC: 0 = as fast as it can. */
static void work(size_t mib, unsigned cpus, int64_t mib_per_sec)
{
    Growth growth = {.memory.pages = NULL};
    int64_t told_usec = 0, rested_usec = 0;
    for (uint64_t pieces = 0;; pieces++) {
        work_a_piece();
        if (growth.memory.pages != NULL)
            grow_on(&growth, cpus);
        int64_t now = now_usec();
        if (mib > 0 && growth.memory.pages == NULL)
            rest_if_due(&rested_usec, now);
        if (now - told_usec < TELL_USEC)
            continue;
        printf("%" PRId64 " %" PRIu64 "\n", now, pieces + atomic_load(&others_pieces));
        fflush(stdout);
        told_usec = now;
        if (mib > 0 && growth.memory.pages == NULL && access(GROW_FILE, F_OK) == 0)
            growth = (Growth){memory_take(mib), now, mib_per_sec * (int64_t)PAGES_PER_MIB, false};
    }
}

static void allocate(size_t mib)
{
    for (;;) {
        Memory memory = memory_take(mib);
        memory_fill(&memory);
        memory_give(&memory);
    }
}

static void dirty(size_t mib)
{
    Memory memory = memory_take(mib);
    for (;;)
        memory_fill(&memory);
}

static void flood(void)
{
    static char block[FLOOD_BYTES];
    memset(block, 'x', sizeof block);
    while (write(STDOUT_FILENO, block, sizeof block) > 0)
        ;
    die("standard output");
}

/* Over what the guest's init reads for its reports. */
static void put_over(const char *file, const char *text)
{
    static const char lie[] = "/dev/shm/lie";
    char path[64];
    static int n;
    (void)snprintf(path, sizeof path, "%s%d", lie, n++);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0 || write(fd, text, strlen(text)) < 0 || close(fd) < 0)
        die(path);
    if (mount(path, file, NULL, MS_BIND, NULL) < 0)
        die(file);
}

static void lie(size_t mib)
{
    static const char none[] = "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
                               "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
    put_over("/proc/meminfo", "MemTotal:       18446744073709551615 kB\n"
                              "MemFree:        18446744073709551615 kB\n"
                              "MemAvailable:   18446744073709551615 kB\n");
    put_over("/proc/pressure/memory", none);
    put_over("/proc/pressure/cpu", none);
    put_over("/proc/stat", "cpu  0 0 0 0 0 0 0 0 0 0\n");
    puts("lies");
    fflush(stdout);
    dirty(mib);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    size_t mib = argc > 2 ? (size_t)strtoul(argv[2], NULL, 10) : 0;
    unsigned cpus = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
    if (strcmp(what, "rate") == 0)
        work(0, 0, 0);
    else if (strcmp(what, "grow") == 0 && mib > 0 && cpus > 0)
        work(mib, cpus, argc > 4 ? strtol(argv[4], NULL, 10) : 0);
    else if (strcmp(what, "allocate") == 0 && mib > 0)
        allocate(mib);
    else if (strcmp(what, "dirty") == 0 && mib > 0)
        dirty(mib);
    else if (strcmp(what, "flood") == 0)
        flood();
    else if (strcmp(what, "lie") == 0 && mib > 0)
        lie(mib);
    fputs(
        "usage: neighbour rate|grow MIB CPUS [MIB_PER_SEC]|allocate MIB|dirty MIB|flood|lie MIB\n",
        stderr);
    return 2;
}
