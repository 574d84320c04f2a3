/* SPDX-License-Identifier: Apache-2.0 */
/* PID 1 of the guests that bench/costs measures: holds memory and dirties it at a set rate. It is told
 * and answers by lines on the first port of its virtio-serial device:
 *
 *   load MIB RATE   touch all of MIB and then dirty RATE MiB of it a second    -> loaded MIB
 *   work MIB RATE   the same, by work that takes all of the CPU: slower if it is -> loaded MIB
 *   dirtied                                                                    -> dirtied PAGES, so far
 *   cpus N          say when N are online, and bring those online that appear  -> cpus N
 *   memory KIB      say when there are so many                                 -> memory KIB
 *
 * What it does, it does once a tick of 10 ms: no answer is more exact. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#define PORT          "/dev/vport0p1"
#define TICK_NSEC     10000000L
#define PAGE          4096u
#define PAGES_PER_MIB 256u
/* What a guest that stood still owes is not made up for. */
#define OWED_SEC_MAX    0.1
#define CALIBRATION_SEC 0.2

static struct {
    int port;
    uint64_t *words; /* n_pages pages */
    size_t n_pages, next;
    double pages_per_sec, due;
    uint64_t dirtied;
    uint64_t spins; /* of work, for each page; 0: it naps */
    struct timespec last;
    long cpus;               /* waited for, or 0 */
    unsigned long total_kib; /* the same */
} load;

static void die(const char *what)
{
    perror(what);
    exit(1); /* of PID 1: the kernel panics, and the guest ends */
}

static void nap(void)
{
    struct timespec tick = {.tv_nsec = TICK_NSEC};
    (void)nanosleep(&tick, NULL);
}

static void answer(const char *what, unsigned long long number)
{
    char line[64];
    int length = snprintf(line, sizeof line, "%s %llu\n", what, number);
    ssize_t written;
    /* Once moved, it may hear the host before it knows that the host hears it. */
    while ((written = write(load.port, line, (size_t)length)) < 0 && errno == EAGAIN)
        nap();
    if (written != length)
        die("write to " PORT);
}

/* Numbers without a pattern: no page is zero, and none compresses. */
static void fill(void)
{
    uint64_t state = 88172645463325252u; /* xorshift64, Marsaglia 2003 */
    for (size_t i = 0; i < load.n_pages * (PAGE / sizeof *load.words); i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        load.words[i] = state;
    }
}

/* One page after the other, over and over: in a short time none is dirtied twice. */
static void touch(void)
{
    load.words[load.next * (PAGE / sizeof *load.words)]++;
    load.next = (load.next + 1) % load.n_pages;
    load.dirtied++;
}

static void spin(uint64_t n)
{
    for (volatile uint64_t i = 0; i < n; i++)
        ;
}

static double seconds_since(const struct timespec *then)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - then->tv_sec) + (double)(now.tv_nsec - then->tv_nsec) / 1e9;
}

/* How often spin() turns in a second, here and now. */
static double spins_per_sec(void)
{
    const uint64_t some = 100000;
    uint64_t spins = 0;
    struct timespec began;
    (void)clock_gettime(CLOCK_MONOTONIC, &began);
    for (; seconds_since(&began) < CALIBRATION_SEC; spins += some)
        spin(some);
    return (double)spins / seconds_since(&began);
}

static void take(unsigned mib, unsigned rate, bool works)
{
    if (load.words != NULL)
        (void)munmap(load.words, load.n_pages * PAGE);
    load.n_pages = (size_t)mib * PAGES_PER_MIB;
    load.words =
        mmap(NULL, load.n_pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (load.words == MAP_FAILED)
        die("mmap");
    fill();
    load.pages_per_sec = (double)rate * PAGES_PER_MIB;
    load.next = 0;
    load.due = 0;
    load.spins = works ? (uint64_t)(spins_per_sec() / load.pages_per_sec) : 0;
    (void)clock_gettime(CLOCK_MONOTONIC, &load.last);
    answer("loaded", mib);
}

/* QEMU before 9.0, emulating, does not see that a page is written again after it was copied, while the
 * translation by which it was written before is still cached: such a migration copies too little, and the
 * guest arrives with pages as they once were. A change of so many pages makes the kernel drop all of them. */
static void forget_translations(void)
{
    static char pages[64 * PAGE] __attribute__((aligned(PAGE)));
    pages[0]++; /* a page that is not there needs no flush */
    if (mprotect(pages, sizeof pages, PROT_READ) != 0 ||
        mprotect(pages, sizeof pages, PROT_READ | PROT_WRITE) != 0)
        die("mprotect");
}

static void dirty(void)
{
    double passed = seconds_since(&load.last);
    (void)clock_gettime(CLOCK_MONOTONIC, &load.last);
    load.due += load.pages_per_sec * (passed < OWED_SEC_MAX ? passed : OWED_SEC_MAX);
    for (; load.due >= 1 && load.n_pages > 0; load.due--)
        touch();
}

/* As much as a tick brings if nothing slows it down. */
static void work(void)
{
    for (int i = 0; i < (int)(load.pages_per_sec * TICK_NSEC / 1e9); i++) {
        touch();
        spin(load.spins);
    }
}

/* As somebody in the guest has to do once there is one more. */
static void bring_online(long n)
{
    for (long i = 1; i < n; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%ld/online", i);
        int fd = open(path, O_WRONLY);
        if (fd < 0)
            continue; /* not there yet */
        if (write(fd, "1", 1) != 1 && errno != EBUSY)
            die(path);
        (void)close(fd);
    }
}

static void look(void)
{
    struct sysinfo info;
    if (load.cpus > 0) {
        bring_online(load.cpus);
        if (sysconf(_SC_NPROCESSORS_ONLN) >= load.cpus) {
            answer("cpus", (unsigned long long)load.cpus);
            load.cpus = 0;
        }
    }
    if (load.total_kib > 0 && sysinfo(&info) == 0 &&
        info.totalram / 1024 * info.mem_unit >= load.total_kib) {
        answer("memory", info.totalram / 1024 * info.mem_unit);
        load.total_kib = 0;
    }
}

static void obey(const char *line)
{
    unsigned mib, rate;
    if (sscanf(line, "load %u %u", &mib, &rate) == 2)
        take(mib, rate, false);
    else if (sscanf(line, "work %u %u", &mib, &rate) == 2 && rate > 0)
        take(mib, rate, true);
    else if (strcmp(line, "dirtied") == 0)
        answer("dirtied", load.dirtied);
    else if (sscanf(line, "cpus %ld", &load.cpus) != 1 &&
             sscanf(line, "memory %lu", &load.total_kib) != 1)
        answer("unknown", 0);
}

/* Nothing comes while nobody is connected. */
static void listen_once(void)
{
    static char line[128];
    static size_t length;
    char byte;
    while (read(load.port, &byte, 1) == 1) {
        line[length] = '\0';
        if (byte == '\n') {
            obey(line);
            length = 0;
        } else if (length < sizeof line - 1) {
            line[length++] = byte;
        }
    }
}

static void mount_at(const char *type, const char *where)
{
    (void)mkdir(where, 0755);
    if (mount(type, where, type, 0, NULL) != 0 && errno != EBUSY)
        die(where);
}

int main(void)
{
    mount_at("devtmpfs", "/dev");
    mount_at("proc", "/proc");
    mount_at("sysfs", "/sys");
    /* The host announces it some time after the device. */
    while ((load.port = open(PORT, O_RDWR | O_NONBLOCK)) < 0 && errno == ENOENT)
        nap();
    if (load.port < 0)
        die(PORT);
    for (;;) {
        forget_translations();
        listen_once();
        look();
        if (load.spins > 0) {
            work();
        } else {
            dirty();
            nap();
        }
    }
}
