/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way from the core's table of constants to options of berthd.conf. Has no number of its
 * own: doc/berthd.conf.5 says the same as the table, which a test compares. */
#include "config.h"

#include "scheduler/daemon/policy_config.h"

typedef struct {
    BerthConfigOption options[BERTH_TUNING_N];
    char defaults[BERTH_TUNING_N][24];
} Policy;

static void fill(Policy *policy, guint i)
{
    const BerthCoreTuningInfo *info = berth_core_tuning((BerthCoreTuning)i);
    g_snprintf(policy->defaults[i], sizeof policy->defaults[i], "%" G_GINT64_FORMAT, info->value);
    policy->options[i] = (BerthConfigOption){
        .offset = i * sizeof(gint64),
        .width = sizeof(gint64),
        .group = "policy",
        .key = info->name,
        .type = BERTH_CONFIG_UINT,
        .min = (guint64)info->min,
        .max = (guint64)info->max,
        .default_value = policy->defaults[i],
        .doc = info->meaning,
    };
}

static gpointer make(gpointer data)
{
    Policy *policy = data;
    for (guint i = 0; i < BERTH_TUNING_N; i++)
        fill(policy, i);
    return policy;
}

BerthConfigTable berth_policy_config_table(gint64 *values)
{
    static GOnce once = G_ONCE_INIT;
    static Policy policy;
    g_once(&once, make, &policy);
    return (BerthConfigTable){policy.options, BERTH_TUNING_N, values};
}
