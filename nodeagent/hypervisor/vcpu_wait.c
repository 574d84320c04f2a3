/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how long vCPUs waited for a CPU of the host, as its kernel counts it for each thread. libvirt
 * (9.0, vcpu.N.delay) looks for it under names that Linux 6.1 does not use, in a file that has it only
 * while all of the scheduler's statistics are on; the one that is read here always has it. */
#include <config.h>

#include "nodeagent/hypervisor/private.h"

/* As QEMU names its threads under libvirt: "CPU 0/KVM". */
static gboolean is_vcpu(const char *task_dir)
{
    g_autofree char *path = g_build_filename(task_dir, "comm", NULL);
    g_autofree char *name = NULL;
    return g_file_get_contents(path, &name, NULL, NULL) && g_str_has_prefix(name, "CPU ");
}

/* The second number of three: ns for which it was ready to run and did not. 0: not known. */
static guint64 wait_nsec(const char *task_dir)
{
    g_autofree char *path = g_build_filename(task_dir, "schedstat", NULL);
    g_autofree char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, NULL))
        return 0;
    const char *second = strchr(text, ' ');
    return second == NULL ? 0 : g_ascii_strtoull(second, NULL, 10);
}

static guint64 read_pid(const char *run_dir, const char *domain)
{
    g_autofree char *name = g_strconcat(domain, ".pid", NULL);
    g_autofree char *path = g_build_filename(run_dir, name, NULL);
    g_autofree char *text = NULL;
    guint64 pid = 0;
    if (g_file_get_contents(path, &text, NULL, NULL) &&
        !g_ascii_string_to_unsigned(g_strstrip(text), 10, 1, G_MAXINT32, &pid, NULL))
        g_debug("%s holds no process id", path);
    return pid;
}

guint64 berth_vcpu_wait_usec(const char *run_dir, const char *proc_dir, const char *domain)
{
    guint64 longest_nsec = 0, pid = read_pid(run_dir, domain);
    g_autofree char *tasks = g_strdup_printf("%s/%" G_GUINT64_FORMAT "/task", proc_dir, pid);
    g_autoptr(GDir) dir = pid == 0 ? NULL : g_dir_open(tasks, 0, NULL);
    const char *task;
    while (dir != NULL && (task = g_dir_read_name(dir)) != NULL) {
        g_autofree char *task_dir = g_build_filename(tasks, task, NULL);
        if (is_vcpu(task_dir))
            longest_nsec = MAX(longest_nsec, wait_nsec(task_dir));
    }
    return longest_nsec / 1000;
}
