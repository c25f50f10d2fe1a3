#include "activity.h"

#include <stddef.h>
#include <string.h>

/* Types that neither make a kernel busy nor keep it alive: pollers and the side
 * effects whose parent says what counts. A name that ends in '_' is a prefix. */
static const char *const untracked[] = {
    "comm_info_",    "kernel_info_",   "shutdown_",           "interrupt_",
    "debug_",        "stream",         "display_data",        "status",
    "execute_input", "execute_result", "update_display_data", "clear_output",
    "error",         "input_",         "iopub_welcome",
};

static int is_tracked(const char *type)
{
    for (size_t i = 0; i < sizeof untracked / sizeof untracked[0]; i++) {
        size_t n = strlen(untracked[i]);
        int prefix = untracked[i][n - 1] == '_';
        if (strncmp(type, untracked[i], n) == 0 && (prefix || type[n] == '\0'))
            return 0;
    }
    return 1;
}

void activity_touch(struct activity *a, struct activity_now now)
{
    a->last_us = now.us;
    a->last_ms = now.ms;
}

void activity_answer(struct activity *a, const char *request_type, struct activity_now now)
{
    if (is_tracked(request_type))
        activity_touch(a, now);
}

void activity_start(struct activity *a, struct activity_now now)
{
    a->state = ACTIVITY_STARTING;
    activity_touch(a, now);
}

static void take_status(struct activity *a, int tracked, const char *state)
{
    if (tracked && strcmp(state, "idle") == 0)
        a->state = ACTIVITY_IDLE;
    else if (tracked && strcmp(state, "busy") == 0)
        a->state = ACTIVITY_BUSY;
    else if (tracked && strcmp(state, "starting") == 0)
        a->state = ACTIVITY_STARTING;
    else if (!tracked && a->state == ACTIVITY_STARTING && strcmp(state, "starting") != 0)
        a->state = ACTIVITY_IDLE;
}

void activity_message(struct activity *a, const char *type, const char *parent_type,
                      const char *execution_state, struct activity_now now)
{
    /* The welcome of a subscription has no parent and is nobody's doing. */
    if (strcmp(type, "iopub_welcome") == 0)
        return;
    int parent_tracked = is_tracked(parent_type); /* "no parent" is tracked */
    if (is_tracked(type) || parent_tracked || a->state == ACTIVITY_BUSY)
        a->last_us = now.us;
    if (strcmp(type, "status") == 0)
        take_status(a, parent_tracked, execution_state);
}

const char *activity_name(enum activity_state s)
{
    static const char *const names[] = { "starting", "idle", "busy" };

    return names[s];
}
