/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what users and operators of the fake world want: jobs of all kinds, limits, drains,
 * maintenance. What an operator sets is stored by the driver and told again after a restart. */
#include "tests/sim/world_internal.h"

#include "common/error.h"

#define SECOND_USEC ((gint64)G_USEC_PER_SEC)

/* --- jobs ----------------------------------------------------------------------------------- */

/* Jobs wait for earlier ones, whatever became of those. */
static void add_dependencies(World *world, Job *job)
{
    static const BerthDependencyKind kinds[] = {BERTH_AFTER_ANY,    BERTH_AFTER_OK,
                                                BERTH_AFTER_NOT_OK, BERTH_AFTER_START,
                                                BERTH_SINGLETON,    BERTH_AFTER_CORR};
    guint count = world_chance(world, 20) ? 1 + world_pick(world, 2) : 0;
    for (guint i = 0; i < count && job->job.id > 1; i++) {
        BerthCoreDependency *dependency = &job->dependencies[job->job.n_dependencies++];
        dependency->kind = kinds[world_pick(world, G_N_ELEMENTS(kinds))];
        guint back = 1 + world_pick(world, (guint)MIN(job->job.id - 1, 6));
        if (dependency->kind == BERTH_SINGLETON)
            continue;
        dependency->job = job->job.id - back;
        const Job *other = world_job(world, dependency->job);
        if (other->is_over && !other->is_refused)
            dependency->outcome =
                model_job_completed(other) ? BERTH_JOB_COMPLETED : BERTH_JOB_FAILED;
    }
}

/* All of a gang fit on the smallest host. */
static void choose_shape(World *world, Job *job)
{
    BerthCoreJob *wanted = &job->job;
    guint32 vcpus = 1 + world_pick(world, 4);
    /* Where memory can be shared it is scarce. */
    guint64 mib_per_vcpu = world->config.features != 0 ? MIB_PER_VCPU * 7 / 8 : MIB_PER_VCPU / 2;
    wanted->resources = (BerthResources){vcpus, vcpus * mib_per_vcpu, 1};
    wanted->guests = world_chance(world, world->config.idles ? 5 : 30)
                         ? 1 + world_pick(world, GUESTS_MAX / vcpus)
                         : 1;
    wanted->array_size = world_chance(world, 35) ? 1 + world_pick(world, TASKS_MAX) : 0;
    if (wanted->array_size > 0 && world_chance(world, 50))
        wanted->array_throttle = 1 + world_pick(world, 3);
    if (world_chance(world, 40))
        wanted->ceiling =
            (BerthResources){vcpus + world_pick(world, 3), wanted->resources.memory_mib * 3 / 2, 0};
    if (world_chance(world, 25)) {
        job->nodes[0] = 1 + world_pick(world, world->hosts->len);
        job->nodes[1] = 1 + world_pick(world, world->hosts->len);
        wanted->n_nodes = 2;
    }
}

static void choose_policy(World *world, BerthCoreJob *wanted)
{
    static const BerthOnLimit on_limits[] = {BERTH_ON_LIMIT_FREEZE, BERTH_ON_LIMIT_NOTIFY,
                                             BERTH_ON_LIMIT_KILL};
    wanted->time_limit_usec = (1 + world_pick(world, world->config.idles ? 600 : 60)) * SECOND_USEC;
    wanted->priority = (gint32)world_pick(world, 3);
    wanted->uid = world_pick(world, N_UIDS);
    wanted->account = world_pick(world, N_ACCOUNTS);
    wanted->qos = world_pick(world, N_QOS);
    wanted->family = world_pick(world, 4);
    wanted->held = world_chance(world, 5);
    wanted->no_requeue = world_chance(world, 20);
    wanted->may_move = world_chance(world, world->config.idles ? 95 : 60);
    wanted->may_checkpoint = world_chance(world, 60);
    if (world_chance(world, 20))
        wanted->checkpoint_every_usec = (5 + world_pick(world, 60)) * SECOND_USEC;
    wanted->opportunistic = world_chance(world, 80);
    wanted->on_timeout =
        world_chance(world, 50) ? BERTH_ON_TIMEOUT_CHECKPOINT : BERTH_ON_TIMEOUT_KILL;
    wanted->on_limit = on_limits[world_pick(world, G_N_ELEMENTS(on_limits))];
}

static void begin_records(Job *job)
{
    job->n_tasks = MAX(job->job.array_size, 1);
    for (guint32 i = 0; i < job->n_tasks; i++)
        job->tasks[i].record =
            (BerthCoreTask){.job = job->job.id, .task = i, .state = BERTH_JOB_PENDING};
}

/* Their jobs are where the array is now. */
static void point_to_lists(World *world)
{
    for (guint64 number = 1; number <= world->jobs->len; number++) {
        Job *job = world_job(world, number);
        job->job.nodes = job->job.n_nodes > 0 ? job->nodes : NULL;
        job->job.dependencies = job->job.n_dependencies > 0 ? job->dependencies : NULL;
        job->job.completed = NULL;
        job->job.n_completed = 0;
    }
}

static void log_job(World *world, const Job *job)
{
    const BerthCoreJob *wanted = &job->job;
    g_string_append_printf(
        world->log,
        "job %u: %u vCPUs, %u guests, %u tasks, throttle %u, limit %d s, "
        "priority %d, QOS %u, user %u of %u, family %u, nodes %u %u%s%s%s\n",
        (guint)wanted->id, wanted->resources.vcpus, wanted->guests, job->n_tasks,
        wanted->array_throttle, (int)(wanted->time_limit_usec / SECOND_USEC), wanted->priority,
        wanted->qos, wanted->uid, wanted->account, (guint)wanted->family, job->nodes[0],
        job->nodes[1], wanted->may_move ? ", may move" : "",
        wanted->may_checkpoint ? ", may be checkpointed" : "", wanted->held ? ", held" : "");
    for (gsize i = 0; i < wanted->n_dependencies; i++)
        g_string_append_printf(world->log, "  after %u by %u\n", (guint)job->dependencies[i].job,
                               job->dependencies[i].kind);
}

void people_submit(World *world)
{
    if (world->jobs->len >= world->config.n_jobs)
        return;
    Job job = {.job = {.id = world->jobs->len + 1, .submit_usec = world->now_usec}};
    choose_shape(world, &job);
    choose_policy(world, &job.job);
    add_dependencies(world, &job);
    begin_records(&job);
    g_array_append_val(world->jobs, job);
    point_to_lists(world);
    const Job *stored = world_job(world, job.job.id);
    log_job(world, stored);
    gboolean may_add = model_may_add_job(world, stored);
    BerthCoreEvent event = {.kind = BERTH_EVENT_JOB_SUBMITTED, .submitted = stored->job};
    BerthTaskRange completed[COMPLETED_MAX];
    model_name_completed(world, stored, &event.submitted, completed);
    gboolean ok = driver_handle_surely(world, &event);
    CHECK(world, !ok || may_add, job.job.id);
    world_note(world, ok ? "submitted" : may_add ? "too large" : "too many jobs");
    if (job.job.array_size > 1)
        world_note(world, "array");
}

/* --- requests ------------------------------------------------------------------------------- */

#define RANGES_MAX 3u              /* are chosen */
#define OTHERS_MAX (2 * TASKS_MAX) /* each index that these have may be a range */

/* What of a job is asked for; all of it: TASKS has step 0. */
typedef struct {
    BerthIndexRange tasks;
    BerthIndexRange others[OTHERS_MAX];
    gsize n_others;
} Asked;

static const Asked all_tasks = {0};

static gboolean is_asked(const Asked *asked, guint32 index)
{
    gboolean is = asked->tasks.step == 0 || berth_index_range_contains(&asked->tasks, index);
    for (gsize i = 0; i < asked->n_others; i++)
        is |= berth_index_range_contains(&asked->others[i], index);
    return is;
}

static gboolean has_pending(const Job *job, const Asked *tasks)
{
    for (guint32 i = 0; i < job->n_tasks; i++)
        if (is_asked(tasks, i) && job->tasks[i].record.state == BERTH_JOB_PENDING)
            return TRUE;
    return FALSE;
}

static gboolean has_ended(const Job *job, const Asked *tasks)
{
    for (guint32 i = 0; i < job->n_tasks; i++)
        if (is_asked(tasks, i) && !berth_job_state_is_final(job->tasks[i].record.state))
            return FALSE;
    return TRUE;
}

/* One that the core would freeze, and that an operator alone thaws. */
static gboolean may_freeze(const Job *job, const Asked *tasks)
{
    for (guint32 i = 0; i < job->n_tasks && job->job.guests <= 1; i++) {
        const BerthCoreTask *record = &job->tasks[i].record;
        if (is_asked(tasks, i) &&
            (record->state == BERTH_JOB_RUNNING || record->state == BERTH_JOB_SUSPENDED) &&
            record->stop_reason == BERTH_REASON_NONE &&
            record->freeze_reason != BERTH_REASON_TIME_LIMIT)
            return TRUE;
    }
    return FALSE;
}

/* Not who stands still because he has no time left. */
static gboolean may_thaw(const Job *job, const Asked *tasks, gboolean by_operator)
{
    gboolean is_frozen = FALSE;
    for (guint32 i = 0; i < job->n_tasks; i++) {
        const Task *task = &job->tasks[i];
        BerthReason reason = task->record.freeze_reason;
        if (!is_asked(tasks, i))
            continue;
        if (reason == BERTH_REASON_FROZEN_BY_OPERATOR && !by_operator)
            return FALSE;
        is_frozen |= reason != BERTH_REASON_TIME_LIMIT &&
                     (reason != BERTH_REASON_NONE || task->record.state == BERTH_JOB_SUSPENDED);
    }
    return is_frozen;
}

/* Some are held, and, if its user asks, not by an operator alone. */
static gboolean may_release(const Job *job, const Asked *tasks, gboolean by_operator)
{
    guint32 asked = 0;
    guint32 held_by_user = job->job.held ? ~job->held_by_operator : job->held_by_user;
    for (guint32 i = 0; i < job->n_tasks; i++)
        if (is_asked(tasks, i) && !berth_job_state_is_final(job->tasks[i].record.state))
            asked |= 1u << i;
    gboolean is_any = (asked & (held_by_user | job->held_by_operator)) != 0;
    if (by_operator || !is_any)
        return is_any;
    return !(job->job.held && job->job.held_by_operator) && (held_by_user & asked) != 0;
}

static gboolean is_allowed(const Job *job, BerthEventKind kind, const Asked *tasks,
                           gboolean by_operator)
{
    if (job->is_refused || has_ended(job, tasks))
        return FALSE;
    if (kind == BERTH_EVENT_JOB_FREEZE_WANTED)
        return may_freeze(job, tasks);
    if (kind == BERTH_EVENT_JOB_THAW_WANTED)
        return may_thaw(job, tasks, by_operator);
    if (kind == BERTH_EVENT_JOB_HELD)
        return has_pending(job, tasks);
    return kind != BERTH_EVENT_JOB_RELEASED || may_release(job, tasks, by_operator);
}

/* What was asked for is in the records, whatever is being done to the guests now. */
static void check_freeze(World *world, const Job *job, const Asked *tasks, gboolean is_wanted)
{
    world_note(world, is_wanted ? "freeze wanted" : "thaw wanted");
    for (guint32 i = 0; i < job->n_tasks; i++) {
        const BerthCoreTask *record = &job->tasks[i].record;
        gboolean runs = record->phase != BERTH_GUEST_NONE && (record->state == BERTH_JOB_RUNNING ||
                                                              record->state == BERTH_JOB_SUSPENDED);
        if (is_asked(tasks, i) && runs && record->stop_reason == BERTH_REASON_NONE &&
            record->freeze_reason != BERTH_REASON_TIME_LIMIT)
            CHECK(world, (record->freeze_reason != BERTH_REASON_NONE) == is_wanted, job->job.id);
    }
}

static BerthIndexRange choose_range(World *world, const Job *job)
{
    BerthIndexRange range;
    range.first = world_pick(world, job->n_tasks);
    range.last = range.first + world_pick(world, TASKS_MAX);
    range.step = 1 + world_pick(world, 3);
    return range;
}

/* Of those kinds many ranges are one decision. */
static gboolean takes_others(BerthEventKind kind)
{
    return kind == BERTH_EVENT_JOB_CANCELLED || kind == BERTH_EVENT_JOB_HELD ||
           kind == BERTH_EVENT_JOB_RELEASED || kind == BERTH_EVENT_JOB_FREEZE_WANTED;
}

static void note_asked(World *world, const Asked *asked, BerthEventKind kind)
{
    world_note(world, kind == BERTH_EVENT_JOB_HELD       ? "some held"
                      : kind == BERTH_EVENT_JOB_RELEASED ? "some released"
                                                         : "some tasks");
    if (asked->n_others > 0)
        world_note(world, kind == BERTH_EVENT_JOB_CANCELLED       ? "many ranges cancelled"
                          : kind == BERTH_EVENT_JOB_FREEZE_WANTED ? "many ranges to be frozen"
                                                                  : "tasks of many ranges");
}

/* Some of an array's, now and then; also such as it does not have. */
static Asked choose_tasks(World *world, const Job *job, BerthEventKind kind)
{
    Asked asked = {0};
    g_autoptr(BerthIndexSet) chosen = berth_index_set_new();
    if (job->n_tasks == 1 || !world_chance(world, 40))
        return asked;
    guint n =
        takes_others(kind) && world_chance(world, 50) ? 2 + world_pick(world, RANGES_MAX - 1) : 1;
    for (guint i = 0; i < n; i++)
        berth_index_set_add(chosen, choose_range(world, job));
    asked.tasks = *berth_index_set_range(chosen, 0);
    asked.n_others = berth_index_set_n_ranges(chosen) - 1;
    for (guint i = 0; i < asked.n_others; i++)
        asked.others[i] = *berth_index_set_range(chosen, i + 1);
    note_asked(world, &asked, kind);
    return asked;
}

/* BEFORE: who was held. Those that were not asked for, and wait, are as they were. */
static void check_hold(World *world, const Job *job, const Asked *tasks, gboolean is_held,
                       gboolean by_operator, const BerthReason *before)
{
    for (guint32 i = 0; i < job->n_tasks; i++) {
        BerthReason now = model_hold(job, i);
        BerthJobState state = job->tasks[i].record.state;
        if (is_held ? state != BERTH_JOB_PENDING : berth_job_state_is_final(state))
            continue; /* who runs and may wait again is released, but not held */
        if (!is_asked(tasks, i))
            CHECK(world, now == before[i], job->job.id);
        else if (is_held)
            CHECK(world,
                  now == (by_operator || before[i] == BERTH_REASON_HELD_BY_OPERATOR
                              ? BERTH_REASON_HELD_BY_OPERATOR
                              : BERTH_REASON_HELD_BY_USER),
                  job->job.id);
        else
            CHECK(world,
                  now == (by_operator || before[i] != BERTH_REASON_HELD_BY_OPERATOR
                              ? BERTH_REASON_NONE
                              : BERTH_REASON_HELD_BY_OPERATOR),
                  job->job.id);
    }
}

static void ask(World *world, BerthEventKind kind, guint64 number, Asked tasks,
                gboolean by_operator)
{
    const Job *job = world_job(world, number);
    gboolean allowed = is_allowed(job, kind, &tasks, by_operator);
    gboolean dies = world->dies_at != DIES_NEVER;
    BerthCoreEvent event = {.kind = kind, .guest = {.job = number}};
    event.request.by_operator = by_operator;
    event.request.tasks = tasks.tasks;
    event.request.others = tasks.others;
    event.request.n_others = tasks.n_others;
    BerthReason before[TASKS_MAX];
    for (guint32 i = 0; i < job->n_tasks; i++)
        before[i] = model_hold(job, i);
    gboolean ok = driver_handle(world, &event);
    CHECK(world, ok == allowed, number);
    if (!ok || dies)
        return;
    if (kind == BERTH_EVENT_JOB_HELD || kind == BERTH_EVENT_JOB_RELEASED)
        check_hold(world, job, &tasks, kind == BERTH_EVENT_JOB_HELD, by_operator, before);
    if (kind == BERTH_EVENT_JOB_CANCELLED)
        CHECK(world, !has_pending(job, &tasks), number);
    if (kind == BERTH_EVENT_JOB_FREEZE_WANTED || kind == BERTH_EVENT_JOB_THAW_WANTED)
        check_freeze(world, job, &tasks, kind == BERTH_EVENT_JOB_FREEZE_WANTED);
}

void people_ask(World *world, BerthEventKind kind, guint64 number, gboolean by_operator)
{
    ask(world, kind, number, choose_tasks(world, world_job(world, number), kind), by_operator);
}

/* --- moves ---------------------------------------------------------------------------------- */

/* The task of JOB whose guest is being moved because somebody asked for it; NULL: none is. */
static const Task *task_that_moves(const Job *job)
{
    for (guint32 i = 0; i < job->n_tasks; i++) {
        BerthReason reason = job->tasks[i].record.migrate_reason;
        if (reason == BERTH_REASON_MOVED_BY_USER || reason == BERTH_REASON_MOVED_BY_OPERATOR ||
            reason == BERTH_REASON_RESIZED_BY_USER || reason == BERTH_REASON_RESIZED_BY_OPERATOR)
            return &job->tasks[i];
    }
    return NULL;
}

/* Whether there is room the core knows; what it begins is where it was to be. */
static void move(World *world, guint64 number, guint32 to, gboolean by_operator)
{
    const Job *job = world_job(world, number);
    gboolean dies = world->dies_at != DIES_NEVER;
    BerthCoreEvent event = {
        .kind = BERTH_EVENT_JOB_MIGRATE_WANTED, .guest = {.job = number}, .node = to};
    event.request.by_operator = by_operator;
    gboolean ok = driver_handle(world, &event);
    if (!ok || dies)
        return;
    CHECK(world, job->job.may_move && job->job.guests <= 1, number);
    gboolean found = FALSE;
    for (guint32 i = 0; i < job->n_tasks; i++) {
        guint32 moves_to = job->tasks[i].record.migrate_to;
        found |= moves_to != 0 && (to == 0 || moves_to == to);
    }
    CHECK(world, found, number);
}

static void move_not(World *world, guint64 number, gboolean by_operator)
{
    const Job *job = world_job(world, number);
    gboolean dies = world->dies_at != DIES_NEVER;
    BerthCoreEvent event = {.kind = BERTH_EVENT_JOB_MIGRATE_UNWANTED, .guest = {.job = number}};
    event.request.by_operator = by_operator;
    const Task *task = task_that_moves(job);
    gboolean waits_for_room = task != NULL && task->record.waits_for_room;
    gboolean ok = driver_handle(world, &event);
    if (!ok || dies)
        return;
    /* Nobody was asked to move one that waits for room where it was to go. */
    task = task_that_moves(job);
    CHECK(world, task != NULL ? task->record.migrate_is_unwanted : waits_for_room, number);
    if (task == NULL)
        world_note(world, "move that waits called off");
    CHECK(world,
          by_operator || task == NULL ||
              task->record.migrate_reason == BERTH_REASON_MOVED_BY_USER ||
              task->record.migrate_reason == BERTH_REASON_RESIZED_BY_USER,
          number);
}

static gboolean runs(const Job *job)
{
    for (guint32 i = 0; i < job->n_tasks; i++)
        if (job->tasks[i].record.phase == BERTH_GUEST_RUNNING)
            return TRUE;
    return FALSE;
}

/* The first after a random one that is being moved so, or that runs; else the random one. */
static guint64 choose_job(World *world, gboolean moves)
{
    guint first = world_pick(world, world->jobs->len);
    for (guint i = 0; i < world->jobs->len; i++) {
        const Job *job = world_job(world, 1 + (first + i) % world->jobs->len);
        if (moves ? task_that_moves(job) != NULL : runs(job))
            return job->job.id;
    }
    return 1 + first;
}

void people_ask_for_move(World *world)
{
    gboolean by_operator = world_chance(world, 50);
    gboolean calls_off = world_chance(world, 40);
    if (world->jobs->len == 0)
        return;
    guint64 job = choose_job(world, calls_off);
    if (calls_off)
        move_not(world, job, by_operator);
    else
        move(world, job, world_pick(world, world->hosts->len + 1), by_operator);
    if (!calls_off && world->dies_at == DIES_NEVER && world_chance(world, 30)) /* after all */
        move_not(world, job, by_operator);
}

/* --- sizes ---------------------------------------------------------------------------------- */

/* What is under way is what was asked for, or was so before. */
static void check_resize(World *world, const Job *job, const BerthResources *wanted)
{
    gboolean found = FALSE;
    for (guint32 i = 0; i < job->n_tasks; i++) {
        const BerthCoreTask *record = &job->tasks[i].record;
        const BerthResources *to = record->resize_to.vcpus > 0   ? &record->resize_to
                                   : record->resources.vcpus > 0 ? &record->resources
                                                                 : &job->job.resources;
        found |= record->phase == BERTH_GUEST_RUNNING &&
                 (wanted->vcpus == 0 || to->vcpus == wanted->vcpus) &&
                 (wanted->memory_mib == 0 || to->memory_mib == wanted->memory_mib);
    }
    CHECK(world, found && job->job.guests <= 1, job->job.id);
    CHECK(world, wanted->vcpus <= MAX(job->job.resources.vcpus, job->job.ceiling.vcpus),
          job->job.id);
    CHECK(world,
          wanted->memory_mib <= MAX(job->job.resources.memory_mib, job->job.ceiling.memory_mib),
          job->job.id);
}

void people_ask_for_size(World *world)
{
    gboolean dies = world->dies_at != DIES_NEVER;
    if (world->jobs->len == 0)
        return;
    const Job *job = world_job(world, choose_job(world, FALSE));
    for (guint i = 0; i < 3 && job->job.ceiling.vcpus <= job->job.resources.vcpus; i++)
        job = world_job(world, choose_job(world, FALSE)); /* of whom there is more to ask */
    BerthCoreEvent event = {.kind = BERTH_EVENT_JOB_RESIZE_WANTED, .guest = {.job = job->job.id}};
    guint64 most_mib = MAX(job->job.resources.memory_mib, job->job.ceiling.memory_mib);
    event.request.by_operator = world_chance(world, 50);
    if (world_chance(world, 70))
        event.request.resources.vcpus = 1 + world_pick(world, job->job.resources.vcpus + 2);
    if (world_chance(world, 70))
        event.request.resources.memory_mib = most_mib * (1 + world_pick(world, 9)) / 8;
    if (world_chance(world, 50)) /* all that it may have, for which there is least room */
        event.request.resources =
            (BerthResources){MAX(job->job.resources.vcpus, job->job.ceiling.vcpus), most_mib, 0};
    if (driver_handle(world, &event) && !dies)
        check_resize(world, job, &event.request.resources);
}

/* --- what operators set --------------------------------------------------------------------- */

static BerthCoreEvent owner_event(const World *world, guint index)
{
    const Owner *owner = &world->owners[index];
    BerthCoreEvent event = {.kind = BERTH_EVENT_ACCOUNT_SET};
    if (index < N_ACCOUNTS) {
        event.account_set.account = index;
        event.account_set.parent = index > 0 ? (guint32)owner->above : 0;
        event.account_set.shares = owner->shares;
        event.account_set.limits = owner->limits;
        return event;
    }
    event.kind = BERTH_EVENT_USER_SET;
    event.user_set.account = (index - N_ACCOUNTS) / N_UIDS;
    event.user_set.uid = (index - N_ACCOUNTS) % N_UIDS;
    event.user_set.shares = owner->shares;
    event.user_set.limits = owner->limits;
    return event;
}

/* Where there are any; the largest task can always run when nothing else does. */
static void choose_limits(World *world, Owner *owner)
{
    BerthCoreLimits *limits = &owner->limits;
    *limits = (BerthCoreLimits){0};
    owner->shares = 1 + world_pick(world, 4);
    if (world->config.seed % 16 < 6)
        return;
    if (world_chance(world, 30))
        limits->running_tasks = 1 + world_pick(world, 4);
    if (world_chance(world, 30))
        limits->vcpus = 4 + world_pick(world, 8);
    if (world_chance(world, 30))
        limits->memory_mib = (4 + world_pick(world, 8)) * (guint64)MIB_PER_VCPU;
    if (world_chance(world, 15))
        limits->jobs = 4 + world_pick(world, 10);
}

static void change_owner(World *world)
{
    guint index = world_pick(world, N_OWNERS);
    choose_limits(world, &world->owners[index]);
    BerthCoreEvent event = owner_event(world, index);
    driver_handle_surely(world, &event);
}

static BerthCoreEvent qos_event(const World *world, guint32 qos)
{
    BerthCoreEvent event = {.kind = BERTH_EVENT_QOS_SET};
    event.qos_set.qos = qos;
    event.qos_set.priority_permille = world->qos_permille[qos];
    return event;
}

static void change_qos(World *world)
{
    guint32 qos = world_pick(world, N_QOS);
    world->qos_permille[qos] = (gint32)world_pick(world, 2001) - 1000;
    BerthCoreEvent event = qos_event(world, qos);
    driver_handle_surely(world, &event);
}

static void admit(World *world, guint32 node, BerthNodeAdmission admission)
{
    static const struct {
        BerthEventKind kind;
        const char *note;
    } kinds[] = {[BERTH_ADMISSION_OPEN] = {BERTH_EVENT_NODE_UNDRAINED, "undrain"},
                 [BERTH_ADMISSION_CORDONED] = {BERTH_EVENT_NODE_CORDONED, "cordon"},
                 [BERTH_ADMISSION_DRAINING] = {BERTH_EVENT_NODE_DRAINED, "drain"}};
    BerthCoreEvent event = {.kind = kinds[admission].kind, .node = node};
    world_host(world, node)->wanted = admission;
    world_note(world, kinds[admission].note);
    driver_handle_surely(world, &event);
}

static BerthCoreEvent window_event(const World *world, guint32 id)
{
    const Window *window = &world->windows[id - 1];
    BerthCoreEvent event = {.kind = window->is_set ? BERTH_EVENT_MAINTENANCE_SET
                                                   : BERTH_EVENT_MAINTENANCE_CLEARED};
    event.maintenance.id = id;
    event.maintenance.nodes = window->nodes;
    event.maintenance.n_nodes = 2;
    event.maintenance.start_usec = window->start_usec;
    event.maintenance.end_usec = window->end_usec;
    return event;
}

static void change_window(World *world)
{
    guint32 id = 1 + world_pick(world, N_WINDOWS);
    Window *window = &world->windows[id - 1];
    window->is_set = world_chance(world, 70);
    window->nodes[0] = 1 + world_pick(world, world->hosts->len);
    window->nodes[1] = 1 + world_pick(world, world->hosts->len);
    window->start_usec = world->now_usec + world_pick(world, 40) * SECOND_USEC;
    window->end_usec = window->start_usec + (1 + world_pick(world, 40)) * SECOND_USEC;
    world_note(world, "maintenance");
    BerthCoreEvent event = window_event(world, id);
    driver_handle_surely(world, &event);
}

/* By its agent, in its session. */
static void set_can_start(World *world, guint32 node, gboolean can)
{
    Host *host = world_host(world, node);
    host->info.cannot_start = !can;
    BerthCoreEvent event = {.kind = BERTH_EVENT_NODE_CHANGED, .node = node, .changed = host->info};
    if (host->has_session)
        driver_handle_surely(world, &event);
}

/* FALSE: nothing is frozen. */
static gboolean want_thaw(World *world)
{
    for (guint64 number = 1; number <= world->jobs->len; number++) {
        const Job *job = world_job(world, number);
        if (job->is_refused || has_ended(job, &all_tasks) || !may_thaw(job, &all_tasks, TRUE))
            continue;
        ask(world, BERTH_EVENT_JOB_THAW_WANTED, number, all_tasks, world_chance(world, 70));
        return TRUE;
    }
    return FALSE;
}

void people_change_something(World *world)
{
    static const BerthNodeAdmission admissions[] = {
        BERTH_ADMISSION_DRAINING, BERTH_ADMISSION_DRAINING, BERTH_ADMISSION_DRAINING,
        BERTH_ADMISSION_CORDONED, BERTH_ADMISSION_OPEN,     BERTH_ADMISSION_OPEN,
        BERTH_ADMISSION_OPEN,     BERTH_ADMISSION_OPEN,     BERTH_ADMISSION_OPEN,
        BERTH_ADMISSION_OPEN};
    guint32 node = 1 + world_pick(world, world->hosts->len);
    if (world_chance(world, 60) && want_thaw(world))
        return;
    switch (world_pick(world, 8)) {
    case 0:
    case 1:
        change_owner(world);
        break;
    case 2:
        change_qos(world);
        break;
    case 3:
    case 4:
        admit(world, node, admissions[world_pick(world, G_N_ELEMENTS(admissions))]);
        break;
    case 5:
        change_window(world);
        break;
    case 6:
        if (world->jobs->len > 0)
            people_ask(world, BERTH_EVENT_JOB_FREEZE_WANTED,
                       1 + world_pick(world, world->jobs->len), world_chance(world, 50));
        break;
    default:
        set_can_start(world, node, world_chance(world, 60));
    }
}

void people_set_up(World *world)
{
    for (guint i = 0; i < N_OWNERS; i++) {
        Owner *owner = &world->owners[i];
        owner->above = i == 0                ? -1
                       : i == N_ACCOUNTS - 1 ? 1
                       : i < N_ACCOUNTS      ? 0
                                             : (gint)((i - N_ACCOUNTS) / N_UIDS);
        choose_limits(world, owner);
    }
    for (guint32 qos = 0; qos < N_QOS; qos++)
        world->qos_permille[qos] = (gint32)world_pick(world, 2001) - 1000;
    people_set_owners(world, world->now_usec);
}

void people_set_owners(World *world, gint64 now_usec)
{
    for (guint i = 0; i < N_OWNERS; i++) {
        BerthCoreEvent event = owner_event(world, i);
        driver_tell(world, now_usec, &event);
    }
    for (guint32 qos = 0; qos < N_QOS; qos++) {
        BerthCoreEvent event = qos_event(world, qos);
        driver_tell(world, now_usec, &event);
    }
}

void people_set_windows(World *world)
{
    for (guint32 id = 1; id <= N_WINDOWS; id++) {
        BerthCoreEvent event = window_event(world, id);
        driver_tell(world, world->now_usec, &event);
    }
}

/* What goes on from a checkpoint may have been grown before limits were set that it does not fit. */
static void let_grown_run(World *world, guint index)
{
    BerthCoreLimits *limits = &world->owners[index].limits;
    if (limits->vcpus > 0)
        limits->vcpus = MAX(limits->vcpus, 8);
    if (limits->memory_mib > 0)
        limits->memory_mib = MAX(limits->memory_mib, 8 * (guint64)MIB_PER_VCPU);
    BerthCoreEvent event = owner_event(world, index);
    driver_handle_surely(world, &event);
}

void people_let_go(World *world)
{
    for (guint i = 0; i < N_OWNERS; i++)
        let_grown_run(world, i);
    for (guint32 node = 1; node <= world->hosts->len; node++) {
        set_can_start(world, node, TRUE);
        admit(world, node, BERTH_ADMISSION_OPEN);
    }
    for (guint64 number = 1; number <= world->jobs->len; number++) {
        const Job *job = world_job(world, number);
        if (job->is_refused)
            continue;
        ask(world, BERTH_EVENT_JOB_RELEASED, number, all_tasks, TRUE);
        if (!has_ended(job, &all_tasks) && may_thaw(job, &all_tasks, TRUE))
            ask(world, BERTH_EVENT_JOB_THAW_WANTED, number, all_tasks, TRUE);
    }
    limits_let_go(world);
}
