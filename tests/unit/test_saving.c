/* SPDX-License-Identifier: Apache-2.0 */
/* Saving a domain of libvirt's own test driver, which takes no snapshot of memory: that is done at libvirt's edge. */
#include <config.h>

#include "nodeagent/hypervisor/private.h"
#include "tests/lib/assert.h"

#define URI  "test:///default"
#define OURS "berth-1-0-0-1"

int __wrap_virConnectSetKeepAlive(virConnectPtr connection, int interval, unsigned int count);
int __wrap_virDomainGetJobInfo(virDomainPtr domain, virDomainJobInfoPtr info);
virDomainSnapshotPtr __wrap_virDomainSnapshotCreateXML(virDomainPtr domain, const char *xml,
                                                       unsigned int flags);
int __wrap_virDomainSnapshotFree(virDomainSnapshotPtr snapshot);

/* The test driver has nobody to keep alive, and no jobs. */
int __wrap_virConnectSetKeepAlive(virConnectPtr connection, int interval, unsigned int count)
{
    return 0;
}

int __wrap_virDomainGetJobInfo(virDomainPtr domain, virDomainJobInfoPtr info)
{
    *info = (virDomainJobInfo){.type = VIR_DOMAIN_JOB_NONE};
    return 0;
}

static char snapshot_of_ours;

virDomainSnapshotPtr __wrap_virDomainSnapshotCreateXML(virDomainPtr domain, const char *xml,
                                                       unsigned int flags)
{
    return (virDomainSnapshotPtr)(void *)&snapshot_of_ours;
}

int __wrap_virDomainSnapshotFree(virDomainSnapshotPtr snapshot)
{
    assert_ptr_equal(snapshot, &snapshot_of_ours);
    return 0;
}

static guint n_connected;

static void on_connected(gpointer data)
{
    n_connected++;
}

static void on_lost(const GError *reason, gpointer data)
{
}

static void on_domain(const char *name, const char *uuid, BerthDomainEvent event, gpointer data)
{
}

static void keep_result(GObject *source, GAsyncResult *result, gpointer data)
{
    *(GAsyncResult **)data = g_object_ref(result);
}

/* The XML of what is saved of one with PINS. */
static char *save_with(const char *pins, GError **error)
{
    static const BerthHypervisorFuncs funcs = {on_connected, on_lost, on_domain};
    g_autoptr(GAsyncResult) result = NULL;
    n_connected = 0;
    g_autoptr(BerthHypervisor) hypervisor = berth_hypervisor_new(URI, &funcs, NULL);
    run_until(n_connected == 1);
    g_auto(BerthVirConnect) side = virConnectOpen(URI);
    g_autofree char *xml =
        g_strdup_printf("<domain type='test'><name>" OURS "</name><memory unit='MiB'>64</memory>%s"
                        "<os><type>hvm</type></os></domain>",
                        pins);
    g_auto(BerthVirDomain) domain = virDomainCreateXML(side, xml, 0);
    assert_non_null(domain);
    berth_hypervisor_save_async(hypervisor, OURS, "/run/fifo", keep_result, &result);
    run_until(result != NULL);
    char *saved = berth_hypervisor_save_finish(result, error);
    virDomainDestroy(domain);
    return saved;
}

/* Who restores it elsewhere may be of a release that knows of no pins, and would leave them. */
static void what_is_saved_has_no_cpus_of_its_host(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *saved =
        save_with("<vcpu cpuset='1'>2</vcpu><iothreads>1</iothreads>"
                  "<cputune><shares>1024</shares><vcpupin vcpu='0' cpuset='1'/>"
                  "<emulatorpin cpuset='0'/><iothreadpin iothread='1' cpuset='0'/></cputune>",
                  &error);
    assert_no_error(error);
    assert_non_null(strstr(saved, ">2</vcpu>"));
    assert_non_null(strstr(saved, "<shares>1024</shares>"));
    assert_null(strstr(saved, "cpuset"));
    assert_null(strstr(saved, "pin"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_saved_has_no_cpus_of_its_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
