/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what the host's kernel counts of one guest's QEMU: the CPU time of its vCPUs, how long they waited
 * for a CPU, how long their quota kept them from one, and the host memory that QEMU occupies.
 *
 * All of it is in files of a few bytes, which are read here without asking libvirt or QEMU: a QEMU that is busy is not
 * disturbed, and a libvirt that does not answer is not waited for. They are kept open, as to find one by its path takes
 * longer than to read it; and through an open one nothing is read of a thread that is no more, whoever has its number by
 * then. Where there are few descriptors left, or somebody wants to know it once, they are opened for each reading: a thread's
 * number may then be another's, as long as nobody looks for the threads anew. Which threads are its vCPUs, and which
 * control groups they are in, is looked up rarely: when QEMU is another, on demand, and when a file is
 * not there any more. libvirt (9.0, vcpu.N.delay) looks for the waiting under names that Linux 6.1 does not use, in a
 * file that has it only while all of the scheduler's statistics are on; the one that is read here
 * always has it.
 *
 * To the kernel a thread waits for a CPU also when its quota is used up. What the domain's quota keeps its vCPUs from is
 * not its host's fault, and taken off. A vCPU's own is no such limit: it is a whole CPU, unless the host holds the
 * guest back. */
#include <config.h>

#include "nodeagent/hypervisor/private.h"

#include "common/descriptors.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of qemu:///system. */
#define LIBVIRT_RUN_DIR "/run/libvirt/qemu"

/* How long vCPUs were ready without a CPU. */
typedef struct {
    guint64 longest_usec;   /* the one that waited most */
    guint64 throttled_usec; /* all together, because of the domain's quota */
    gint64 left_usec;       /* of the first, without its share of the second ... */
    guint64 starved_usec;   /* ... at most: a counter does not fall */
} Waits;

/* One of the kernel's that is read again and again. */
typedef struct {
    char *path;
    int fd; /* -1: it is not there, or is opened for each reading */
} KernelFile;

struct BerthQemuCounters {
    char *pid_path;
    char *proc_dir;
    char *cgroup_dir;
    gboolean may_keep;    /* files open */
    gboolean keeps;       /* ... and does, since their number was looked at */
    KernelFile *memory;   /* statm; NULL: its threads are not known */
    GPtrArray *schedules; /* KernelFile: schedstat of each vCPU */
    GPtrArray *quotas; /* KernelFile: cpu.stat of each control group whose quota holds for vCPUs */
    const KernelFile *domain_quota; /* the one of them for all vCPUs; NULL: there is none */
    guint64 pid;                    /* whose ... */
    Waits waits;                    /* ... these are */
};

/* Takes PATH. */
static KernelFile *kernel_file_new(const BerthQemuCounters *counters, char *path)
{
    KernelFile *file = g_new(KernelFile, 1);
    *file = (KernelFile){path, counters->keeps ? open(path, O_RDONLY | O_CLOEXEC) : -1};
    return file;
}

static void kernel_file_free(gpointer data)
{
    KernelFile *file = data;
    if (file == NULL)
        return;
    if (file->fd >= 0)
        close(file->fd);
    g_free(file->path);
    g_free(file);
}

BerthQemuCounters *berth_qemu_counters_new_at(const char *run_dir, const char *proc_dir,
                                              const char *cgroup_dir, const char *domain,
                                              gboolean may_keep)
{
    BerthQemuCounters *counters = g_new0(BerthQemuCounters, 1);
    g_autofree char *name = g_strconcat(domain, ".pid", NULL);
    counters->pid_path = g_build_filename(run_dir, name, NULL);
    counters->proc_dir = g_strdup(proc_dir);
    counters->cgroup_dir = g_strdup(cgroup_dir);
    counters->may_keep = may_keep;
    counters->schedules = g_ptr_array_new_with_free_func(kernel_file_free);
    counters->quotas = g_ptr_array_new_with_free_func(kernel_file_free);
    return counters;
}

BerthQemuCounters *berth_qemu_counters_new(const char *domain)
{
    return berth_qemu_counters_new_at(LIBVIRT_RUN_DIR, "/proc", "/sys/fs/cgroup", domain, TRUE);
}

void berth_qemu_counters_free(BerthQemuCounters *counters)
{
    if (counters == NULL)
        return;
    g_ptr_array_unref(counters->schedules);
    g_ptr_array_unref(counters->quotas);
    kernel_file_free(counters->memory);
    g_free(counters->cgroup_dir);
    g_free(counters->proc_dir);
    g_free(counters->pid_path);
    g_free(counters);
}

/* As much of a small file as fits, with a NUL. g_file_get_contents() takes three times as long. */
static gboolean read_small(const char *path, char *text, gsize size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return FALSE;
    ssize_t length = read(fd, text, size - 1);
    close(fd);
    text[MAX(length, 0)] = '\0';
    return length > 0;
}

/* As read_small() would, if it were opened. */
static gboolean read_again(const KernelFile *file, char *text, gsize size)
{
    if (file->fd < 0)
        return read_small(file->path, text, size);
    ssize_t length = pread(file->fd, text, size - 1, 0);
    text[MAX(length, 0)] = '\0';
    return length > 0;
}

/* --- finding the files ---------------------------------------------------------------------- */

static guint64 read_pid(const char *path)
{
    char text[32];
    guint64 pid = 0;
    if (read_small(path, text, sizeof text) &&
        !g_ascii_string_to_unsigned(g_strstrip(text), 10, 1, G_MAXINT32, &pid, NULL))
        g_debug("%s holds no process id", path);
    return pid;
}

/* As QEMU names its threads under libvirt: "CPU 0/KVM". */
static gboolean is_vcpu(const char *task_dir)
{
    g_autofree char *path = g_build_filename(task_dir, "comm", NULL);
    char name[64];
    return read_small(path, name, sizeof name) && g_str_has_prefix(name, "CPU ");
}

static gboolean is_in_list(const char *list, const char *name)
{
    g_auto(GStrv) names = g_strsplit(list, ",", -1);
    return g_strv_contains((const char *const *)names, name);
}

/* The directory of the CPU controller's group in LINE of a /proc/PID/cgroup (transfer full); NULL: it is of
 * another controller. Version 2 has one line, "0::PATH"; version 1 one for each hierarchy, which is
 * mounted under the name of one of its controllers. */
static char *group_of(const char *cgroup_dir, const char *line)
{
    g_auto(GStrv) parts = g_strsplit(line, ":", 3);
    if (g_strv_length(parts) != 3)
        return NULL;
    if (*parts[1] == '\0') {
        g_autofree char *path = g_build_filename(cgroup_dir, parts[2], "cpu.stat", NULL);
        return g_file_test(path, G_FILE_TEST_EXISTS) ? g_build_filename(cgroup_dir, parts[2], NULL)
                                                     : NULL;
    }
    return is_in_list(parts[1], "cpu") ? g_build_filename(cgroup_dir, "cpu", parts[2], NULL) : NULL;
}

static gboolean has_path(gconstpointer file, gconstpointer path)
{
    return g_str_equal(((const KernelFile *)file)->path, path);
}

static const KernelFile *add_quota(BerthQemuCounters *counters, const char *group)
{
    char *path = g_build_filename(group, "cpu.stat", NULL);
    guint at = 0;
    if (g_ptr_array_find_with_equal_func(counters->quotas, path, has_path, &at)) {
        g_free(path);
        return g_ptr_array_index(counters->quotas, at);
    }
    KernelFile *quota = kernel_file_new(counters, path);
    g_ptr_array_add(counters->quotas, quota);
    return quota;
}

/* The quota for all threads of the domain is that of the group which those of its threads are in: in version 2, under
 * systemd, the one called "libvirt" in the domain's scope (virCgroupSetCpuCfsQuota(), src/util/vircgroup.c of libvirt). */
static void add_domain_quota(BerthQemuCounters *counters, const char *vcpu_group)
{
    g_autofree char *parent = g_path_get_dirname(vcpu_group);
    counters->domain_quota = add_quota(counters, parent);
}

/* libvirt gives each vCPU a group with a quota of its own, within that of the domain, which may have one
 * for all of its threads. */
static void add_quotas(BerthQemuCounters *counters, const char *task_dir)
{
    g_autofree char *path = g_build_filename(task_dir, "cgroup", NULL);
    g_autofree char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, NULL))
        return;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (guint i = 0; lines[i] != NULL; i++) {
        g_autofree char *group = group_of(counters->cgroup_dir, lines[i]);
        g_autofree char *name = group != NULL ? g_path_get_basename(group) : NULL;
        if (group == NULL)
            continue;
        add_quota(counters, group);
        if (g_str_has_prefix(name, "vcpu"))
            add_domain_quota(counters, group);
    }
}

static void forget_all(BerthQemuCounters *counters)
{
    g_ptr_array_set_size(counters->schedules, 0);
    g_ptr_array_set_size(counters->quotas, 0);
    counters->domain_quota = NULL;
    g_clear_pointer(&counters->memory, kernel_file_free);
}

void berth_qemu_counters_find(BerthQemuCounters *counters)
{
    guint64 pid = read_pid(counters->pid_path);
    g_autofree char *process = g_strdup_printf("%s/%" G_GUINT64_FORMAT, counters->proc_dir, pid);
    g_autofree char *tasks = g_build_filename(process, "task", NULL);
    g_autoptr(GDir) dir = pid == 0 ? NULL : g_dir_open(tasks, 0, NULL);
    const char *task;
    forget_all(counters);
    if (pid != counters->pid)
        counters->waits = (Waits){0};
    counters->pid = pid;
    counters->keeps = counters->may_keep && !berth_descriptors_are_few();
    while (dir != NULL && (task = g_dir_read_name(dir)) != NULL) {
        g_autofree char *task_dir = g_build_filename(tasks, task, NULL);
        if (!is_vcpu(task_dir))
            continue;
        g_ptr_array_add(counters->schedules,
                        kernel_file_new(counters, g_build_filename(task_dir, "schedstat", NULL)));
        add_quotas(counters, task_dir);
    }
    if (counters->schedules->len > 0)
        counters->memory = kernel_file_new(counters, g_build_filename(process, "statm", NULL));
}

/* --- reading them --------------------------------------------------------------------------- */

/* "ON WAITING TIMES": ns for which it was on a CPU, and ready without one. */
static gboolean add_schedule(const KernelFile *file, guint64 *cpu_nsec, guint64 *longest_nsec)
{
    char text[96];
    char *end;
    if (!read_again(file, text, sizeof text))
        return FALSE;
    *cpu_nsec += g_ascii_strtoull(text, &end, 10);
    *longest_nsec = MAX(*longest_nsec, g_ascii_strtoull(end, NULL, 10));
    return TRUE;
}

/* Version 2 says it in us, version 1 in ns; 0 where there is no quota. */
static guint64 throttled_usec(const KernelFile *file)
{
    char text[512];
    if (!read_again(file, text, sizeof text))
        return 0;
    const char *usec = strstr(text, "\nthrottled_usec ");
    if (usec != NULL)
        return g_ascii_strtoull(usec + strlen("\nthrottled_usec "), NULL, 10);
    const char *nsec = strstr(text, "\nthrottled_time ");
    return nsec != NULL ? g_ascii_strtoull(nsec + strlen("\nthrottled_time "), NULL, 10) / 1000 : 0;
}

/* The second number is of pages that are resident. */
static guint64 resident_mib(const KernelFile *file)
{
    char text[128];
    char *end;
    if (file == NULL || !read_again(file, text, sizeof text))
        return 0;
    g_ascii_strtoull(text, &end, 10);
    return g_ascii_strtoull(end, NULL, 10) * (guint64)sysconf(_SC_PAGESIZE) >> 20;
}

/* For how long the host left that vCPU without a CPU which has waited most, LONGEST_USEC: without its share of what the
 * domain's quota kept all of them from, QUOTA_USEC. That is taken to be the mean, and the one that waits most has waited no
 * less. */
static guint64 starved_usec(BerthQemuCounters *counters, guint64 longest_usec, guint64 quota_usec)
{
    Waits *waits = &counters->waits;
    guint64 longest_now_usec = MAX(longest_usec, waits->longest_usec);
    guint64 throttled_now_usec = MAX(quota_usec, waits->throttled_usec);
    guint64 share_usec = (throttled_now_usec - waits->throttled_usec) / counters->schedules->len;
    waits->left_usec += (gint64)(longest_now_usec - waits->longest_usec) - (gint64)share_usec;
    waits->longest_usec = longest_now_usec;
    waits->throttled_usec = throttled_now_usec;
    waits->starved_usec = MAX(waits->starved_usec, (guint64)MAX(waits->left_usec, 0));
    return waits->starved_usec;
}

static gboolean read_all(BerthQemuCounters *counters, BerthQemuUsage *out_usage)
{
    BerthQemuUsage usage = {0};
    guint64 cpu_nsec = 0, longest_nsec = 0, domain_usec = 0;
    if (counters->schedules->len == 0)
        return FALSE;
    for (guint i = 0; i < counters->schedules->len; i++)
        if (!add_schedule(g_ptr_array_index(counters->schedules, i), &cpu_nsec, &longest_nsec))
            return FALSE;
    for (guint i = 0; i < counters->quotas->len; i++) {
        const KernelFile *quota = g_ptr_array_index(counters->quotas, i);
        guint64 usec = throttled_usec(quota);
        usage.throttled_usec += usec;
        if (quota == counters->domain_quota)
            domain_usec = usec;
    }
    usage.cpu_usec = cpu_nsec / 1000;
    usage.starved_usec = starved_usec(counters, longest_nsec / 1000, domain_usec);
    usage.host_memory_mib = resident_mib(counters->memory);
    *out_usage = usage;
    return TRUE;
}

gboolean berth_qemu_counters_read(BerthQemuCounters *counters, BerthQemuUsage *out_usage)
{
    if (read_all(counters, out_usage))
        return TRUE;
    berth_qemu_counters_find(counters);
    return read_all(counters, out_usage);
}

gboolean berth_qemu_counters_read_once(const char *domain, BerthQemuUsage *out_usage)
{
    g_autoptr(BerthQemuCounters) counters =
        berth_qemu_counters_new_at(LIBVIRT_RUN_DIR, "/proc", "/sys/fs/cgroup", domain, FALSE);
    return berth_qemu_counters_read(counters, out_usage);
}

guint64 berth_hypervisor_pid(const char *name)
{
    g_autofree char *path = g_strdup_printf(LIBVIRT_RUN_DIR "/%s.pid", name);
    return read_pid(path);
}
