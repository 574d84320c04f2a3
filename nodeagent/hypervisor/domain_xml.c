/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how a guest looks to QEMU: the domain XML. Does not own libvirt calls.
 *
 * Everything that a host could choose differently tomorrow is written out (versioned machine, PCI
 * addresses, virtio revision, CPU topology), so that the same config makes the same guest anywhere.
 * Devices sit on the root bus: no root port per device, which a booting kernel would have to probe;
 * nothing here is ever unplugged. */
#include "nodeagent/hypervisor/private.h"

#include "common/channel.h"
#include "common/id.h"

/* CPU weight of a guest, that cgroup v2 allows. */
#define SHARES_MAX 10000u

/* Of libvirt's, for what it says to QEMU. */
#define QEMU_XMLNS "http://libvirt.org/schemas/domain/qemu/1.0"

/* Adds element NAME to PARENT, with attribute names and values up to NULL. */
static xmlNode *add(xmlNode *parent, const char *name, ...) G_GNUC_NULL_TERMINATED;
static xmlNode *add(xmlNode *parent, const char *name, ...)
{
    xmlNode *node = xmlNewChild(parent, NULL, BAD_CAST name, NULL);
    va_list arguments;
    va_start(arguments, name);
    for (const char *key = va_arg(arguments, const char *); key != NULL;
         key = va_arg(arguments, const char *))
        xmlNewProp(node, BAD_CAST key, BAD_CAST va_arg(arguments, const char *));
    va_end(arguments);
    return node;
}

static xmlNode *add_text(xmlNode *parent, const char *name, const char *text)
{
    return xmlNewTextChild(parent, NULL, BAD_CAST name, BAD_CAST text);
}

static void set_number(xmlNode *node, const char *key, guint64 value)
{
    char text[24];
    g_snprintf(text, sizeof text, "%" G_GUINT64_FORMAT, value);
    xmlNewProp(node, BAD_CAST key, BAD_CAST text);
}

static xmlNode *add_number(xmlNode *parent, const char *name, guint64 value)
{
    char text[24];
    g_snprintf(text, sizeof text, "%" G_GUINT64_FORMAT, value);
    return add_text(parent, name, text);
}

/* Places DEVICE in a slot of the root bus. */
static void set_slot(xmlNode *device, const char *slot)
{
    add(device, "address", "type", "pci", "domain", "0x0000", "bus", "0x00", "slot", slot,
        "function", "0x0", NULL);
}

static void add_metadata(xmlNode *domain, const BerthDomainMetadata *metadata)
{
    xmlNode *parent = add(domain, "metadata", NULL);
    xmlNode *node = xmlNewChild(parent, NULL, BAD_CAST "guest", NULL);
    xmlSetNs(node, xmlNewNs(node, BAD_CAST BERTH_DOMAIN_XMLNS, BAD_CAST "berth"));
    berth_domain_metadata_write(node, metadata);
}

void berth_domain_metadata_write(xmlNode *node, const BerthDomainMetadata *metadata)
{
    set_number(node, "job", metadata->id.job);
    set_number(node, "task", metadata->id.task);
    set_number(node, "guest", metadata->id.guest);
    set_number(node, "epoch", metadata->id.epoch);
    set_number(node, "vcpus", metadata->limits.vcpus);
    set_number(node, "memory-mib", metadata->limits.memory_mib);
    set_number(node, "disk-mib", metadata->limits.disk_mib);
    if (metadata->balloon_mib > 0)
        set_number(node, "balloon-mib", metadata->balloon_mib);
    if (metadata->is_opportunistic)
        set_number(node, "opportunistic", 1);
    if (metadata->stands)
        set_number(node, "stands", 1);
    xmlNewProp(node, BAD_CAST "disk", BAD_CAST metadata->disk_id);
    xmlNewProp(node, BAD_CAST "log", BAD_CAST metadata->log_id);
}

void berth_domain_metadata_set_weight(xmlNode *node, gboolean is_opportunistic)
{
    if (is_opportunistic)
        xmlSetProp(node, BAD_CAST "opportunistic", BAD_CAST "1");
    else
        xmlUnsetProp(node, BAD_CAST "opportunistic");
}

guint64 berth_domain_shares(guint32 vcpus, gboolean is_opportunistic)
{
    guint64 each = is_opportunistic ? BERTH_CPU_SHARES_IN_SLACK : BERTH_CPU_SHARES;
    return MIN(each * vcpus, SHARES_MAX);
}

void berth_domain_set_cpus(xmlNode *vcpu, xmlNode *tune, const char *guest_cpus,
                           const char *host_cpus)
{
    if (guest_cpus == NULL || host_cpus == NULL)
        return;
    xmlNewProp(vcpu, BAD_CAST "cpuset", BAD_CAST guest_cpus);
    add(tune, "emulatorpin", "cpuset", host_cpus, NULL);
    add(tune, "iothreadpin", "iothread", "1", "cpuset", host_cpus, NULL);
}

static guint32 vcpus_max(const BerthDomainConfig *config)
{
    return MAX(config->vcpus, config->vcpus_max);
}

/* For what can be plugged in. */
static guint64 growth_mib(const BerthDomainConfig *config)
{
    guint64 more = config->memory_max_mib - MIN(config->memory_max_mib, config->memory_mib);
    guint64 regions = (more + BERTH_GROWTH_REGION_MIB - 1) / BERTH_GROWTH_REGION_MIB;
    return regions * BERTH_GROWTH_REGION_MIB;
}

static xmlNode *add_mib(xmlNode *parent, const char *name, guint64 mib)
{
    xmlNode *node = add_number(parent, name, mib);
    xmlNewProp(node, BAD_CAST "unit", BAD_CAST "MiB");
    return node;
}

static void add_memory(xmlNode *domain, const BerthDomainConfig *config)
{
    guint64 growth = growth_mib(config);
    if (growth > 0)
        xmlNewProp(add_mib(domain, "maxMemory", config->memory_mib + growth), BAD_CAST "slots",
                   BAD_CAST "1");
    add_mib(domain, "memory", config->memory_mib);
    if (growth > 0)
        add_mib(domain, "currentMemory", config->memory_mib);
}

/* Memory, vCPUs, and how much of the host's CPUs they may take: each thread at most one whole CPU,
 * so that a guest of N vCPUs uses N CPUs, with one more for its emulator and one for its disk. */
static void add_resources(xmlNode *domain, const BerthDomainConfig *config)
{
    static const char *const who[] = {"", "emulator_", "iothread_"};
    const char *period_usec = G_STRINGIFY(BERTH_CPU_PERIOD_USEC);
    add_memory(domain, config);
    xmlNode *vcpu = add_number(domain, "vcpu", vcpus_max(config));
    xmlNewProp(vcpu, BAD_CAST "placement", BAD_CAST "static");
    if (vcpus_max(config) > config->vcpus)
        set_number(vcpu, "current", config->vcpus);
    add_text(domain, "iothreads", "1");

    xmlNode *tune = add(domain, "cputune", NULL);
    add_number(tune, "shares", berth_domain_shares(config->vcpus, config->is_opportunistic));
    for (gsize i = 0; i < G_N_ELEMENTS(who); i++) {
        g_autofree char *period = g_strconcat(who[i], "period", NULL);
        g_autofree char *quota = g_strconcat(who[i], "quota", NULL);
        add_text(tune, period, period_usec);
        add_text(tune, quota, period_usec);
    }
    berth_domain_set_cpus(vcpu, tune, config->guest_cpus, config->host_cpus);
    if (config->partition != NULL)
        add_text(add(domain, "resource", NULL), "partition", config->partition);
}

/* Two things take a kernel long at its start where QEMU translates its code, and are needless there.
 * For a single processor it rewrites thousands of lock prefixes, each in a mapping made for it; QEMU
 * heeds the prefix only where there are several. And it measures the APIC's timer for 100 ms; a
 * single vCPU can have its ticks from the HPET.
 *
 * And an emulated guest is to read the time from the HPET. Its TSC is the host's, whose rate it would have
 * to measure at its start, while others may have the CPU; and it has another on the next host. The ACPI
 * timer starts over every 4.7 s, and a guest that gets no CPU for so long loses them. The HPET counts
 * nanoseconds of the host's own clock, and starts over after 42.9 s. Guests of KVM have its clock. */
static char *boot_cmdline(const BerthDomainConfig *config)
{
    const char *patching = config->use_kvm ? "" : " noreplace-smp";
    const char *timer = config->use_kvm || vcpus_max(config) > 1 ? "" : " nolapic_timer";
    const char *clock = config->use_kvm ? "" : " clocksource=hpet";
    return g_strconcat(config->cmdline, patching, timer, clock, NULL);
}

static void add_boot(xmlNode *domain, const BerthDomainConfig *config)
{
    g_autofree char *cmdline = boot_cmdline(config);
    xmlNode *os = add(domain, "os", NULL);
    xmlNode *type = add_text(os, "type", "hvm");
    xmlNewProp(type, BAD_CAST "arch", BAD_CAST "x86_64");
    xmlNewProp(type, BAD_CAST "machine", BAD_CAST config->machine);
    add_text(os, "kernel", config->kernel);
    add_text(os, "initrd", config->initramfs);
    add_text(os, "cmdline", cmdline);
}

/* What is plugged in belongs to a cell. */
static void add_cell(xmlNode *cpu, const BerthDomainConfig *config)
{
    g_autofree char *cpus = g_strdup_printf("0-%u", vcpus_max(config) - 1);
    xmlNode *cell = add(add(cpu, "numa", NULL), "cell", "id", "0", "cpus", cpus, NULL);
    set_number(cell, "memory", config->memory_mib);
    xmlNewProp(cell, BAD_CAST "unit", BAD_CAST "MiB");
}

static void add_growth(xmlNode *devices, const BerthDomainConfig *config)
{
    xmlNode *memory = add(devices, "memory", "model", "virtio-mem", NULL);
    xmlNode *target = add(memory, "target", NULL);
    add_mib(target, "size", growth_mib(config));
    add_number(target, "node", 0);
    add_mib(target, "block", BERTH_GROWTH_BLOCK_MIB);
    add_mib(target, "requested", 0);
    add(memory, "alias", "name", BERTH_GROWTH_ALIAS, NULL);
    set_slot(memory, "0x06");
}

static void add_cpu(xmlNode *domain, const BerthDomainConfig *config)
{
    static const char *const modes[] = {"host-model", "host-passthrough", "maximum", NULL};
    xmlNode *cpu;
    if (g_strv_contains(modes, config->cpu_model)) {
        cpu = add(domain, "cpu", "mode", config->cpu_model, "check", "none", NULL);
    } else {
        cpu = add(domain, "cpu", "mode", "custom", "match", "exact", "check", "none", NULL);
        xmlNode *model = add_text(cpu, "model", config->cpu_model);
        xmlNewProp(model, BAD_CAST "fallback", BAD_CAST "forbid");
    }
    xmlNode *topology = add(cpu, "topology", "sockets", "1", "dies", "1", NULL);
    set_number(topology, "cores", vcpus_max(config));
    xmlNewProp(topology, BAD_CAST "threads", BAD_CAST "1");
    /* With it, kernel and C library clear and copy memory with instructions that are emulated byte by
     * byte. */
    if (!config->use_kvm && g_str_equal(config->cpu_model, "maximum"))
        add(cpu, "feature", "policy", "disable", "name", "erms", NULL);
    if (growth_mib(config) > 0)
        add_cell(cpu, config);
}

/* Once QEMU is there, libvirt asks it for some 400 properties of its CPU, one after the other, and
 * writes into the live definition which features a model has got. Of these modes it writes nothing:
 * there it makes do with the two answers that an older QEMU gives. Of models it needs all, or it takes
 * those features for missing that are no CPUID bits. */
static void add_cpu_query(xmlNode *domain, const BerthDomainConfig *config)
{
    static const char *const modes[] = {"host-passthrough", "maximum", NULL};
    if (!g_strv_contains(modes, config->cpu_model))
        return;
    xmlNode *capabilities = add(domain, "capabilities", NULL);
    xmlSetNs(capabilities, xmlNewNs(capabilities, BAD_CAST QEMU_XMLNS, BAD_CAST "qemu"));
    add(capabilities, "del", "capability", "cpu-unavailable-features", NULL); /* of its namespace */
}

/* Whatever ends the guest ends its QEMU: there is nothing in it to come back to. */
static void add_platform(xmlNode *domain, const BerthDomainConfig *config)
{
    xmlNode *features = add(domain, "features", NULL);
    add(features, "acpi", NULL);
    add(features, "apic", NULL);
    add(features, "vmport", "state", "off", NULL);
    add(features, "smm", "state", "off", NULL);
    add(domain, "genid", NULL);
    add_cpu(domain, config);
    xmlNode *clock = add(domain, "clock", "offset", "utc", NULL);
    add(clock, "timer", "name", "hpet", "present", config->use_kvm ? "no" : "yes", NULL);
    add_text(domain, "on_poweroff", "destroy");
    add_text(domain, "on_reboot", "destroy");
    add_text(domain, "on_crash", "destroy");
}

static void add_rbd_source(xmlNode *disk, const BerthDiskSource *source)
{
    xmlNode *auth = add(disk, "auth", "username", source->rbd_user, NULL);
    add(auth, "secret", "type", "ceph", "uuid", source->rbd_secret_uuid, NULL);
    g_autofree char *name = g_strconcat(source->rbd_pool, "/", source->rbd_image, NULL);
    xmlNode *node = add(disk, "source", "protocol", "rbd", "name", name, NULL);
    for (char **monitor = source->rbd_monitors; *monitor != NULL; monitor++) {
        /* "host:port"; the host may be an IPv6 address in brackets */
        const char *colon = strrchr(*monitor, ':');
        gsize length = colon == NULL ? strlen(*monitor) : (gsize)(colon - *monitor);
        gboolean bracketed = length >= 2 && (*monitor)[0] == '[' && (*monitor)[length - 1] == ']';
        g_autofree char *host =
            bracketed ? g_strndup(*monitor + 1, length - 2) : g_strndup(*monitor, length);
        xmlNode *element = add(node, "host", "name", host, NULL);
        if (colon != NULL)
            xmlNewProp(element, BAD_CAST "port", BAD_CAST(colon + 1));
    }
}

/* Errors of the host's storage stop the guest until they have passed; it never sees them. */
static void add_disk(xmlNode *devices, const BerthDomainConfig *config)
{
    const BerthDiskSource *source = config->disk;
    const char *cache = config->disk_cache == BERTH_DISK_CACHE_NONE ? "none" : "writeback";
    const char *format = source->is_rbd ? "raw" : source->file_format;
    xmlNode *disk = add(devices, "disk", "type", source->is_rbd ? "network" : "file", "device",
                        "disk", "model", "virtio-non-transitional", NULL);
    add(disk, "driver", "name", "qemu", "type", format, "cache", cache, "error_policy", "stop",
        "rerror_policy", "stop", "discard", "unmap", "iothread", "1", NULL);
    if (source->is_rbd)
        add_rbd_source(disk, source);
    else
        add(disk, "source", "file", source->file_path, NULL);
    add(disk, "target", "dev", "vda", "bus", "virtio", NULL);
    set_slot(disk, "0x05");
}

static void add_channel(xmlNode *devices, const BerthDomainConfig *config)
{
    /* Port 0 is the console's by definition: two ports are the fewest with a channel. */
    xmlNode *controller = add(devices, "controller", "type", "virtio-serial", "index", "0", "model",
                              "virtio-non-transitional", "ports", "2", NULL);
    set_slot(controller, "0x02");
    xmlNode *channel = add(devices, "channel", "type", "unix", NULL);
    add(channel, "source", "mode", "bind", "path", config->channel_path, NULL);
    add(channel, "target", "type", "virtio", "name", BERTH_CHANNEL_PORT, NULL);
    add(channel, "address", "type", "virtio-serial", "controller", "0", "bus", "0", "port", "1",
        NULL);
}

static void add_console(xmlNode *devices, const BerthDomainConfig *config)
{
    xmlNode *serial = add(devices, "serial", "type", "file", NULL);
    add(serial, "source", "path", config->console_path, "append", "on", NULL);
    add(serial, "target", "type", "isa-serial", "port", "0", NULL);
}

static void add_devices(xmlNode *domain, const BerthDomainConfig *config)
{
    xmlNode *devices = add(domain, "devices", NULL);
    if (config->disk != NULL)
        add_disk(devices, config);
    add(devices, "controller", "type", "pci", "index", "0", "model", "pcie-root", NULL);
    add(devices, "controller", "type", "usb", "model", "none", NULL);
    if (config->channel_path != NULL)
        add_channel(devices, config);
    add_console(devices, config);

    xmlNode *balloon = add(devices, "memballoon", "model", "virtio-non-transitional",
                           "freePageReporting", "on", NULL);
    if (config->stats_period_sec > 0)
        set_number(add(balloon, "stats", NULL), "period", config->stats_period_sec);
    set_slot(balloon, "0x03");

    xmlNode *rng = add(devices, "rng", "model", "virtio-non-transitional", NULL);
    xmlNode *backend = add_text(rng, "backend", "/dev/urandom");
    xmlNewProp(backend, BAD_CAST "model", BAD_CAST "random");
    set_slot(rng, "0x04");
    if (growth_mib(config) > 0)
        add_growth(devices, config);
}

char *berth_domain_xml(const BerthDomainConfig *config)
{
    g_autoptr(xmlDoc) document = xmlNewDoc(BAD_CAST "1.0");
    xmlNode *domain = xmlNewNode(NULL, BAD_CAST "domain");
    xmlDocSetRootElement(document, domain);
    xmlNewProp(domain, BAD_CAST "type", BAD_CAST(config->use_kvm ? "kvm" : "qemu"));
    add_text(domain, "name", config->name);
    if (config->uuid != NULL)
        add_text(domain, "uuid", config->uuid);
    if (config->metadata != NULL)
        add_metadata(domain, config->metadata);
    add_resources(domain, config);
    add_boot(domain, config);
    add_platform(domain, config);
    add_devices(domain, config);
    add_cpu_query(domain, config);

    xmlChar *text = NULL;
    int length = 0;
    xmlDocDumpFormatMemory(document, &text, &length, 1);
    char *xml = g_strndup((const char *)text, (gsize)length);
    xmlFree(text);
    return xml;
}
