/* SPDX-License-Identifier: Apache-2.0 */
/* berth-init: PID 1 of a guest. It makes the image the root, runs one task that it gets over the channel,
 * and switches the guest off. Here is the order of the boot, and what happens when it fails. It trusts
 * the host. */
#include "common/channel.h"
#include "images/init/cgroups.h"
#include "images/init/fault.h"
#include "images/init/loop.h"
#include "images/init/mounts.h"
#include "images/init/port.h"
#include "images/init/say.h"
#include "images/init/usage.h"

#include <fcntl.h>
#include <net/if.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROOT_DISK "/dev/vda"
/* Devices are there within milliseconds; on a host that is overloaded it may take longer. */
#define DEVICE_TIMEOUT_MSEC 30000

static const char probe_answer[] = "berth-probe-ok\n";

static _Noreturn void power_off_now(void)
{
    (void)reboot(RB_POWER_OFF);
    /* A kernel without ACPI: PID 1's end is a panic, which panic=-1 turns into the guest's end. */
    _exit(1);
}

/* Descriptors 0 to 2 are the console, or at least something. */
static void open_console(void)
{
    int fd = open("/dev/console", O_RDWR | O_NOCTTY);

    if (fd < 0)
        fd = open("/dev/null", O_RDWR);
    for (int i = 0; i < 3 && fd >= 0; i++)
        if (fd != i)
            (void)dup2(fd, i);
    if (fd > 2)
        close(fd);
}

static void raise_loopback(void)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) != 0)
        say("cannot bring up the loopback interface: %m");
    if (fd >= 0)
        close(fd);
}

static void prepare_process(void)
{
    sigset_t all;

    sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    (void)reboot(RB_DISABLE_CAD);
    (void)setpriority(PRIO_PROCESS, 0, -20);
}

/* The parts of the boot whose failure the host can be told over the channel. */
static bool boot(Loop *loop, Fault *fault)
{
    UsageMemory memory;
    uint64_t overhead_kib;

    if (!mounts_switch_root(ROOT_DISK, DEVICE_TIMEOUT_MSEC, fault))
        return false;
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
        say("cannot lock PID 1 in memory: %m");
    memory = usage_memory();
    overhead_kib = memory.total_kib - memory.available_kib;
    loop_set_overhead(loop, memory.total_kib, overhead_kib);
    if (!cgroups_setup(memory.total_kib, overhead_kib, fault))
        return false;
    raise_loopback();
    return true;
}

static Loop *open_loop(uint64_t memory_total_kib, Fault *fault)
{
    int port = port_open(BERTH_CHANNEL_PORT, DEVICE_TIMEOUT_MSEC, fault);

    return port >= 0 ? loop_new(port, memory_total_kib, fault) : NULL;
}

int main(void)
{
    Fault fault = {0};
    Loop *loop;

    if (getpid() != 1)
        return 2; /* the mounts of a host are not ours to change */
    prepare_process();
    if (!mounts_early(&fault)) {
        open_console();
        say("%s", fault.text);
        power_off_now();
    }
    open_console();
    if (mounts_command_line_has("berth.probe")) {
        (void)!write(STDOUT_FILENO, probe_answer, strlen(probe_answer));
        power_off_now();
    }
    loop = open_loop(usage_memory().total_kib, &fault);
    if (loop == NULL) {
        say("%s", fault.text);
        power_off_now();
    }
    if (!boot(loop, &fault))
        loop_fail(loop, fault.text);
    loop_run(loop);
    (void)kill(-1, SIGKILL);
    mounts_sync();
    power_off_now();
}
