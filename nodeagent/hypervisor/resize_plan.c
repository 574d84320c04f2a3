/* SPDX-License-Identifier: Apache-2.0 */
/* DECIDE, resizes: what is to be asked of libvirt so that a domain gets what it is to have. Pure.
 *
 * There may be room for more memory than its ceiling, which who asks keeps to: a guest plugs in no more than is requested
 * of it, QEMU refuses it what is beyond.
 *
 * vCPUs are plugged in and never out, which a guest may refuse: one that is to have fewer gets less time, all
 * of its threads together. Memory beyond what it was started with comes and goes in blocks; the balloon keeps
 * the rest of a block, what is below that start, and what a guest does not give back in blocks. A block
 * is in the guest before the balloon takes its part of it, so that who has reached his limit never has less
 * for having got more.
 *
 * A guest is asked for no more than nobody uses in it. Its kernel isolates all of 128 MiB while it empties some
 * of them, and its balloon takes whatever is free; a process that asks for a page then is killed, or another one. */
#include "nodeagent/hypervisor/private.h"

#include "common/error.h"
#include "common/types.h"
#include "common/units.h"

#define KIB_PER_MIB 1024u

/* --- what it has ---------------------------------------------------------------------------- */

/* The number that is the text of the element at PATH; where there is none, ABSENT. */
static gboolean read_content(xmlNode *root, const char *path, guint64 absent, guint64 *out_value,
                             GError **error)
{
    xmlNode *node = berth_xml_find(root, path);
    *out_value = absent;
    if (node == NULL)
        return TRUE;
    xmlChar *text = xmlNodeGetContent(node);
    g_autofree char *copy = g_strdup(text == NULL ? "" : (const char *)text);
    xmlFree(text);
    if (berth_parse_uint64(copy, 0, G_MAXINT64, out_value, error))
        return TRUE;
    g_prefix_error(error, "%s of the domain: ", path);
    return FALSE;
}

/* libvirt writes all sizes in KiB. */
static gboolean read_mib(xmlNode *root, const char *path, guint64 *out_mib, GError **error)
{
    guint64 kib;
    if (!read_content(root, path, 0, &kib, error))
        return FALSE;
    *out_mib = kib / KIB_PER_MIB;
    return TRUE;
}

static gboolean read_vcpus(xmlNode *root, BerthDomainState *state, GError **error)
{
    guint64 most;
    guint64 now;
    if (!read_content(root, "/domain/vcpu", 0, &most, error))
        return FALSE;
    now = most;
    xmlNode *node = berth_xml_find(root, "/domain/vcpu[@current]");
    if (node != NULL && !berth_xml_number(node, "current", 1, most, &now, error))
        return FALSE;
    state->vcpus_max = (guint32)MIN(most, G_MAXUINT32);
    state->vcpus = (guint32)MIN(now, G_MAXUINT32);
    return TRUE;
}

#define GROWTH "/domain/devices/memory[alias/@name='" BERTH_GROWTH_ALIAS "']/target/"

static gboolean read_memory(xmlNode *root, BerthDomainState *state, GError **error)
{
    guint64 all_mib;
    if (!read_mib(root, "/domain/memory", &all_mib, error) ||
        !read_mib(root, "/domain/currentMemory", &state->memory_mib, error) ||
        !read_mib(root, GROWTH "size", &state->growth_mib, error) ||
        !read_mib(root, GROWTH "requested", &state->requested_mib, error) ||
        !read_mib(root, GROWTH "current", &state->plugged_mib, error))
        return FALSE;
    state->base_mib = all_mib - MIN(all_mib, state->growth_mib);
    return TRUE;
}

gboolean berth_domain_state_parse(const char *xml, gsize length, BerthDomainState *out_state,
                                  GError **error)
{
    g_auto(BerthDomainState) state = {0};
    g_autoptr(xmlDoc) document =
        berth_xml_parse(xml, length, BERTH_DOMAIN_XML_MAX, "domain's XML", error);
    if (document == NULL)
        return FALSE;
    xmlNode *root = xmlDocGetRootElement(document);
    xmlNode *metadata = berth_domain_metadata_find(root);
    if (metadata == NULL) {
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND,
                            "the domain is none of Berth's");
        return FALSE;
    }
    if (!berth_domain_metadata_read(metadata, &state.metadata, error) ||
        !read_vcpus(root, &state, error) || !read_memory(root, &state, error))
        return FALSE;
    *out_state = state;
    state = (BerthDomainState){0};
    return TRUE;
}

void berth_domain_state_clear(BerthDomainState *state)
{
    berth_domain_metadata_clear(&state->metadata);
}

/* --- what it is to get ---------------------------------------------------------------------- */

static gboolean check(const BerthDomainState *state, const BerthDomainSize *wanted, GError **error)
{
    guint64 most_mib = state->base_mib + state->growth_mib;
    if (wanted->vcpus >= 1 && wanted->vcpus <= state->vcpus_max && wanted->memory_mib <= most_mib &&
        wanted->balloon_mib < wanted->memory_mib &&
        wanted->memory_mib - wanted->balloon_mib >= state->base_mib / BERTH_MEMORY_LEFT_MIN_PART)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "%u vCPU%s and %" G_GUINT64_FORMAT
                " MiB of memory, of which a balloon keeps %" G_GUINT64_FORMAT
                " MiB, are not within what the guest was started for: 1 to %u "
                "vCPU%s, and %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT " MiB",
                wanted->vcpus, wanted->vcpus == 1 ? "" : "s", wanted->memory_mib,
                wanted->balloon_mib, state->vcpus_max, state->vcpus_max == 1 ? "" : "s",
                state->base_mib / BERTH_MEMORY_LEFT_MIN_PART, most_mib);
    return FALSE;
}

/* What the balloon is to leave of the base, for USABLE in all. What it is to give back it gives back at once;
 * what it is to take it takes when blocks do not come or go any more. */
static guint64 base_left_mib(const BerthDomainState *state, guint64 usable_mib, guint64 needed_mib,
                             gboolean is_settled)
{
    guint64 least = MAX(state->base_mib / BERTH_MEMORY_LEFT_MIN_PART, 1);
    guint64 wanted = usable_mib - MIN(usable_mib, state->plugged_mib);
    guint64 left = CLAMP(wanted, least, state->base_mib);
    guint64 now = state->memory_mib - MIN(state->memory_mib, state->plugged_mib);
    if (left >= now)
        return left > now || is_settled ? left : 0;
    left = MIN(MAX(left, needed_mib - MIN(needed_mib, state->plugged_mib)), now);
    return is_settled && left < now ? left : 0;
}

static guint64 in_blocks(guint64 mib)
{
    return mib / BERTH_GROWTH_BLOCK_MIB + (mib % BERTH_GROWTH_BLOCK_MIB != 0 ? 1 : 0);
}

/* For USABLE in all; fewer than there are only so far as they are not needed. */
static guint64 requested_mib(const BerthDomainState *state, guint64 usable_mib, guint64 needed_mib)
{
    guint64 base_mib = state->memory_mib - MIN(state->memory_mib, state->plugged_mib);
    guint64 wanted = in_blocks(usable_mib - MIN(usable_mib, state->base_mib));
    guint64 needed = in_blocks(needed_mib - MIN(needed_mib, base_mib));
    guint64 now = in_blocks(MAX(state->requested_mib, state->plugged_mib));
    guint64 blocks = MAX(wanted, MIN(needed, now));
    return MIN(blocks * BERTH_GROWTH_BLOCK_MIB, state->growth_mib);
}

gboolean berth_resize_plan(const BerthDomainState *state, const BerthDomainSize *wanted,
                           guint64 needed_mib, gboolean presses, BerthResizePlan *out_plan,
                           GError **error)
{
    if (!check(state, wanted, error))
        return FALSE;
    guint64 usable = wanted->memory_mib - wanted->balloon_mib;
    BerthResizePlan plan = {.vcpus = MAX(state->vcpus, wanted->vcpus), .quota_usec = -1};
    plan.requested_mib = requested_mib(state, usable, needed_mib);
    if (wanted->vcpus < plan.vcpus)
        plan.quota_usec = (gint64)wanted->vcpus * BERTH_CPU_PERIOD_USEC;
    plan.shares = berth_domain_shares(wanted->vcpus, wanted->is_opportunistic);
    plan.is_done = state->memory_mib == usable;
    plan.base_left_mib = base_left_mib(state, usable, needed_mib,
                                       presses || state->plugged_mib == plan.requested_mib);
    *out_plan = plan;
    return TRUE;
}
