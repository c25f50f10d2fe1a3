#include "launchmsg.h"

#include "msgtable.h"

#define LIMITS(s)                                                                     \
    U64(s, limits.memory_bytes), U64(s, limits.home_bytes), U64(s, limits.tmp_bytes), \
        U64(s, limits.shm_bytes), U64(s, limits.output_bytes), U32(s, limits.inodes), \
        U32(s, limits.pids), U32(s, limits.cpu_millis), U32(s, limits.nofile)
#define KERNEL(s) U64(s, sandbox), U32_UPTO(s, kernel, LAUNCH_KERNELS_MAX), U32(s, generation)

static const struct msg_field create_fields[] = {
    STR(launch_create, profile, LAUNCH_NAME_MAX),
    LIMITS(launch_create),
    U32_UPTO(launch_create, data_all, 1),
    BLOB(launch_create, data, LAUNCH_DATA_MAX),
    TEXT(launch_create, principal, LAUNCH_PRINCIPAL_MAX),
    U64(launch_create, workspace_bytes),
};
static const struct msg_field created_fields[] = {
    U64(launch_created, sandbox),
    LIMITS(launch_created),
};
static const struct msg_field start_fields[] = {
    KERNEL(launch_start),
    U32_UPTO(launch_start, flags, LAUNCH_SOCKETS_FD),
    U32_UPTO(launch_start, spec_dir, 255),
    STR(launch_start, spec_name, LAUNCH_NAME_MAX),
    TEXT(launch_start, cwd, LAUNCH_PATH_MAX),
    BLOB(launch_start, argv, LAUNCH_ARGV_MAX),
    BLOB(launch_start, env, LAUNCH_ENV_MAX),
};
static const struct msg_field started_fields[] = { KERNEL(launch_started) };
static const struct msg_field kernel_ref_fields[] = { KERNEL(launch_kernel_ref) };
static const struct msg_field signal_fields[] = {
    KERNEL(launch_signal),
    U32_UPTO(launch_signal, signo, 31),
    U32_UPTO(launch_signal, group, 1),
};
static const struct msg_field stop_fields[] = { KERNEL(launch_stop) };
static const struct msg_field status_fields[] = {
    U64(launch_status, sandbox),
    U32_UPTO(launch_status, reset_peak, 1),
};
static const struct msg_field status_answer_fields[] = {
    U64(launch_status_answer, sandbox),
    U64(launch_status_answer, memory_bytes),
    U64(launch_status_answer, memory_peak_bytes),
    U64(launch_status_answer, memory_limit_bytes),
    U64(launch_status_answer, oom_kills),
    U64(launch_status_answer, cpu_usec),
    U64(launch_status_answer, pids),
    U64(launch_status_answer, pids_limit),
    U64(launch_status_answer, tasks_refused),
};
static const struct msg_field list_fields[] = { U64(launch_list, after) };
static const struct msg_field listed_fields[] = {
    U64(launch_listed, sandbox),
    LIMITS(launch_listed),
    TEXT(launch_listed, profile, LAUNCH_NAME_MAX),
    U32_UPTO(launch_listed, data_all, 1),
    BLOB(launch_listed, data, LAUNCH_DATA_MAX),
    BLOB(launch_listed, kernels, LAUNCH_KERNELS_MAX * sizeof(struct launch_kernel_info)),
    BLOB(launch_listed, note, LAUNCH_NOTE_MAX),
};
static const struct msg_field note_fields[] = {
    U64(launch_note, sandbox),
    BLOB(launch_note, note, LAUNCH_NOTE_MAX),
};
static const struct msg_field deadline_fields[] = {
    U64(launch_deadline, sandbox),
    U64(launch_deadline, monotonic_ms),
};
static const struct msg_field audit_fields[] = { U64(launch_audit, reserved) };
static const struct msg_field done_fields[] = { U64(launch_done, sandbox) };
static const struct msg_field error_fields[] = {
    U32(launch_error, verb),
    TEXT(launch_error, text, LAUNCH_TEXT_MAX),
};
static const struct msg_field kernel_exited_fields[] = {
    KERNEL(launch_kernel_exited),
    I32(launch_kernel_exited, exit_code),
    I32(launch_kernel_exited, signo),
    U32_UPTO(launch_kernel_exited, out_of_memory, 1),
    U32_UPTO(launch_kernel_exited, requested, 1),
    U32_UPTO(launch_kernel_exited, sandbox_ends, 1),
    U64(launch_kernel_exited, memory_limit_bytes),
    U64(launch_kernel_exited, memory_peak_bytes),
};
static const struct msg_field out_of_memory_fields[] = {
    U64(launch_out_of_memory, sandbox),
    U64(launch_out_of_memory, kills),
    U32_UPTO(launch_out_of_memory, kernel_ends, 1),
    U64(launch_out_of_memory, memory_limit_bytes),
    U64(launch_out_of_memory, memory_peak_bytes),
};
static const struct msg_field tasks_refused_fields[] = {
    U64(launch_tasks_refused, sandbox),
    U64(launch_tasks_refused, refused),
    U64(launch_tasks_refused, pids_limit),
};
static const struct msg_field sandbox_gone_fields[] = {
    U64(launch_sandbox_gone, sandbox),
    TEXT(launch_sandbox_gone, reason, LAUNCH_TEXT_MAX),
};

static const struct msg_field room_fields[] = { U64(launch_room, reserved) };
static const struct msg_field room_answer_fields[] = {
    U64(launch_room_answer, memory_available), U64(launch_room_answer, memory_reserve),
    U64(launch_room_answer, memory_promised),  U32(launch_room_answer, sessions),
    U32(launch_room_answer, sessions_max),     TEXT(launch_room_answer, lack, LAUNCH_NAME_MAX),
};

static const struct msg_spec requests[] = {
    SPEC(LAUNCH_CREATE, "create", launch_create, create_fields, 0, 0),
    SPEC(LAUNCH_START_KERNEL, "start_kernel", launch_start, start_fields, 2, 7),
    SPEC(LAUNCH_SEAL, "seal", launch_kernel_ref, kernel_ref_fields, 0, 0),
    SPEC(LAUNCH_SIGNAL, "signal", launch_signal, signal_fields, 0, 0),
    SPEC(LAUNCH_STOP, "stop", launch_stop, stop_fields, 0, 0),
    SPEC(LAUNCH_STATUS, "status", launch_status, status_fields, 0, 0),
    SPEC(LAUNCH_LIST, "list", launch_list, list_fields, 0, 0),
    SPEC(LAUNCH_NOTE, "note", launch_note, note_fields, 0, MSG_FDS_MAX),
    SPEC(LAUNCH_DEADLINE, "deadline", launch_deadline, deadline_fields, 0, 0),
    SPEC(LAUNCH_ROOM, "room", launch_room, room_fields, 0, 0),
    SPEC(LAUNCH_AUDIT, "audit", launch_audit, audit_fields, 0, 0),
};

static const struct msg_spec answers[] = {
    SPEC(LAUNCH_CREATE, "created", launch_created, created_fields, 2, 2),
    SPEC(LAUNCH_START_KERNEL, "started", launch_started, started_fields, 0, 1),
    SPEC(LAUNCH_SEAL, "sealed", launch_done, done_fields, 0, 0),
    SPEC(LAUNCH_SIGNAL, "signalled", launch_done, done_fields, 0, 0),
    SPEC(LAUNCH_STOP, "stopped", launch_done, done_fields, 0, 0),
    SPEC(LAUNCH_STATUS, "status", launch_status_answer, status_answer_fields, 0, 0),
    SPEC(LAUNCH_LIST, "listed", launch_listed, listed_fields, 0, MSG_FDS_MAX),
    SPEC(LAUNCH_NOTE, "noted", launch_done, done_fields, 0, 0),
    SPEC(LAUNCH_DEADLINE, "deadline", launch_done, done_fields, 0, 0),
    SPEC(LAUNCH_ROOM, "room", launch_room_answer, room_answer_fields, 0, 0),
    SPEC(LAUNCH_AUDIT, "audit", launch_audit, audit_fields, 1, 1),
    SPEC(LAUNCH_ERROR, "error", launch_error, error_fields, 0, 0),
};

static const struct msg_spec events[] = {
    SPEC(LAUNCH_KERNEL_EXITED, "kernel_exited", launch_kernel_exited, kernel_exited_fields, 0, 0),
    SPEC(LAUNCH_OUT_OF_MEMORY, "out_of_memory", launch_out_of_memory, out_of_memory_fields, 0, 0),
    SPEC(LAUNCH_SANDBOX_GONE, "sandbox_gone", launch_sandbox_gone, sandbox_gone_fields, 0, 0),
    SPEC(LAUNCH_TASKS_REFUSED, "tasks_refused", launch_tasks_refused, tasks_refused_fields, 0, 0),
};

const struct msg_spec *launch_request_spec(unsigned verb)
{
    return FIND(requests, verb);
}

const struct msg_spec *launch_answer_spec(unsigned verb)
{
    return FIND(answers, verb);
}

const struct msg_spec *launch_event_spec(unsigned verb)
{
    return FIND(events, verb);
}

const char *launch_verb_name(unsigned verb)
{
    const struct msg_spec *s = launch_request_spec(verb);

    if (s == NULL)
        s = launch_answer_spec(verb);
    if (s == NULL)
        s = launch_event_spec(verb);
    return s != NULL ? s->name : "unknown";
}
