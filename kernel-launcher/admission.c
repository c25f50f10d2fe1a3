#include "admission.h"

#include <errno.h>
#include <inttypes.h>

#include "clock.h"
#include "err.h"
#include "launcher.h"
#include "log.h"
#include "sandbox.h"

#define MIB UINT64_C(1048576)

enum {
    /* An interpreter with its messaging, and init, before the first cell (measured: 76 to 110). */
    START_MIB = 128,
    RESERVE_MIB = 512,
    DISK_RESERVE_MIB = 1024,
    TASKS_RESERVE = 1024,
    TASKS_LEAST = 256, /* builders, init, a kernel with its threads; and somebody must log in */
    FILES_LEAST = 256, /* of a session that is built and noted, and what serves the others */
};

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t reserve_of(uint64_t configured, uint64_t total, uint64_t reserve)
{
    if (configured != ADMISSION_DEFAULT)
        return configured;
    if (total == UINT64_MAX)
        return reserve;
    if (total / 20 > reserve)
        reserve = total / 20;
    return least(reserve, total / 4);
}

uint64_t admission_reserve(uint64_t configured, uint64_t memory_total)
{
    return reserve_of(configured, memory_total, RESERVE_MIB * MIB);
}

uint64_t admission_disk_reserve(uint64_t configured, uint64_t disk_total)
{
    return reserve_of(configured, disk_total, DISK_RESERVE_MIB * MIB);
}

uint64_t admission_share_memory(uint64_t reserve, uint64_t total)
{
    const uint64_t one = START_MIB * MIB;

    if (reserve == 0 || total == UINT64_MAX)
        return UINT64_MAX;
    return total > reserve && total - reserve > one ? total - reserve : one;
}

uint64_t admission_share_tasks(uint64_t total)
{
    return total == UINT64_MAX ? UINT64_MAX
                               : total - reserve_of(ADMISSION_DEFAULT, total, TASKS_RESERVE);
}

int admission_disk_fits(const struct admission *a, uint64_t bytes)
{
    return a->disk_available == UINT64_MAX ||
           (a->disk_available >= a->disk_reserve && a->disk_available - a->disk_reserve >= bytes);
}

uint64_t admission_promise(uint64_t memory_limit, uint64_t used)
{
    uint64_t needs = least(memory_limit, START_MIB * MIB);

    return needs > used ? needs - used : 0;
}

enum admission_lack admission_decide(const struct admission *a, uint64_t memory_limit)
{
    uint64_t available = a->memory_available, needs = admission_promise(memory_limit, 0);

    if (a->sessions >= a->sessions_max)
        return ADMISSION_SESSIONS;
    /* By subtraction: a configured reserve may be any number. */
    if (available != UINT64_MAX &&
        (available < a->memory_reserve || available - a->memory_reserve < a->memory_promised ||
         available - a->memory_reserve - a->memory_promised < needs))
        return ADMISSION_MEMORY;
    if (a->tasks < TASKS_LEAST)
        return ADMISSION_TASKS;
    if (a->files < FILES_LEAST)
        return ADMISSION_FILES;
    return a->disk_needed > 0 && !admission_disk_fits(a, a->disk_needed) ? ADMISSION_DISK
                                                                         : ADMISSION_OPEN;
}

const char *admission_lack_name(enum admission_lack lack)
{
    static const char *const names[] = { "", "memory", "tasks", "files", "sessions", "disk" };

    return names[lack];
}

/* Of all sessions that started something a moment ago. */
static uint64_t promised(const struct launcher *l, uint64_t now_ms)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < l->sessions.max; i++) {
        const struct session *s = l->sessions.slot[i];

        if (s != NULL && s->state == SESSION_ALIVE && s->sandbox != NULL &&
            s->starting_until_ms > now_ms)
            sum += admission_promise(s->limits.memory_bytes, sandbox_memory(s->sandbox));
    }
    return sum;
}

void admission_look(const struct launcher *l, struct admission *ret)
{
    struct sandbox_room room;

    sandbox_host_room(l->host, &room);
    *ret = (struct admission){
        .memory_total = room.memory_total,
        .memory_available = room.memory,
        .memory_reserve = admission_reserve(l->config->memory_reserve, room.memory_total),
        .memory_promised = promised(l, clock_ms()),
        .tasks = room.tasks,
        .files = room.files,
        .disk_available = room.disk,
        .disk_reserve = admission_disk_reserve(l->config->disk_reserve, room.disk_total),
        .sessions = l->sessions.count,
        .sessions_max = l->sessions.max,
    };
}

static void tell(struct launcher *l, const struct admission *a, enum admission_lack lack)
{
    if (lack == l->lack)
        return;
    l->lack = lack;
    if (lack == ADMISSION_OPEN)
        log_info("admission_open", "%s", "");
    else
        log_warn("admission_closed",
                 "lack=%s memory_available=%" PRIu64 " memory_reserve=%" PRIu64
                 " memory_promised=%" PRIu64 " tasks=%" PRIu64 " files=%" PRIu64 " sessions=%u",
                 admission_lack_name(lack), a->memory_available, a->memory_reserve,
                 a->memory_promised, a->tasks, a->files, a->sessions);
}

int admission_check(struct launcher *l, const struct admission *a,
                    const struct launch_limits *limits, struct err *e)
{
    /* No numbers: they are of others. */
    static const char *const texts[] = {
        [ADMISSION_MEMORY] = "the host has no memory left for another session",
        [ADMISSION_TASKS] = "the host has no processes left for another session",
        [ADMISSION_FILES] = "the host has no open files left for another session",
        [ADMISSION_SESSIONS] = "the server holds as many sessions as it can",
        [ADMISSION_DISK] = "the host has no disk left for another session",
    };
    enum admission_lack lack = admission_decide(a, limits->memory_bytes);

    tell(l, a, lack);
    return lack == ADMISSION_OPEN ? 0 : err_set(e, HC_EFULL, "%s", texts[lack]);
}

int admission_failure(int rc, struct err *e)
{
    /* ENODEV: loop devices; a container may have a few of them and no more */
    if (!err_is_shortage(-rc) && rc != -ENODEV)
        return rc;
    log_warn("session_not_built", "error=%s", LOG_QUOTED(e->msg));
    return err_set(e, HC_EFULL, "the host has no room for another session");
}
