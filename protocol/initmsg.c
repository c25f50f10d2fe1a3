#include "initmsg.h"

#include "msgtable.h"

#define PATH(s, m) STR(s, m, INIT_PATH_MAX)

static const struct msg_field open_fields[] = {
    PATH(init_open, path),
    U32_UPTO(init_open, flags, 31),
    U32_UPTO(init_open, mode, 0777),
};
static const struct msg_field stat_fields[] = {
    U32(init_stat, mode),     U32(init_stat, nlink), U64(init_stat, size),
    U64(init_stat, mtime_ns), U64(init_stat, inode),
};
static const struct msg_field path_fields[] = { PATH(init_path, path) };
static const struct msg_field list_fields[] = { PATH(init_list, path), U64(init_list, cursor) };
static const struct msg_field listed_fields[] = {
    U64(init_listed, cursor),
    BLOB(init_listed, entries, INIT_PAGE_MAX),
};
static const struct msg_field aside_fields[] = {
    PATH(init_aside, path),
    U32_UPTO(init_aside, mode, 0777),
};
static const struct msg_field aside_answer_fields[] = { PATH(init_aside_answer, name) };
static const struct msg_field rename_fields[] = {
    PATH(init_rename, from),
    PATH(init_rename, to),
    U32_UPTO(init_rename, replace, 1),
};
static const struct msg_field remove_fields[] = {
    PATH(init_remove, path),
    U32_UPTO(init_remove, recursive, 1),
};
static const struct msg_field spawn_fields[] = {
    BLOB(init_spawn, argv, INIT_ARGV_MAX),
    BLOB(init_spawn, env, INIT_ENV_MAX),
    TEXT(init_spawn, cwd, INIT_PATH_MAX),
};
static const struct msg_field spawned_fields[] = { U32(init_spawned, pid) };
static const struct msg_field kill_fields[] = {
    U32(init_kill, pid),
    U32_UPTO(init_kill, signo, 31),
};
static const struct msg_field done_fields[] = { U32(init_done, unused) };
static const struct msg_field error_fields[] = {
    U32(init_error, verb),
    TEXT(init_error, text, 1024),
};
static const struct msg_field exited_fields[] = {
    U32(init_exited, pid),
    I32(init_exited, exit_code),
    I32(init_exited, signo),
};

static const struct msg_spec requests[] = {
    SPEC(INIT_OPEN, "open", init_open, open_fields, 0, 0),
    SPEC(INIT_STAT, "stat", init_path, path_fields, 0, 0),
    SPEC(INIT_LIST, "list", init_list, list_fields, 0, 0),
    SPEC(INIT_ASIDE, "aside", init_aside, aside_fields, 0, 0),
    SPEC(INIT_RENAME, "rename", init_rename, rename_fields, 0, 0),
    SPEC(INIT_REMOVE, "remove", init_remove, remove_fields, 0, 0),
    SPEC(INIT_MKDIR, "mkdir", init_path, path_fields, 0, 0),
    SPEC(INIT_SPAWN, "spawn", init_spawn, spawn_fields, 3, 3),
    SPEC(INIT_KILL, "kill", init_kill, kill_fields, 0, 0),
};

static const struct msg_spec answers[] = {
    SPEC(INIT_OPEN, "opened", init_stat, stat_fields, 1, 1),
    SPEC(INIT_STAT, "stat", init_stat, stat_fields, 0, 0),
    SPEC(INIT_LIST, "listed", init_listed, listed_fields, 0, 0),
    SPEC(INIT_ASIDE, "aside", init_aside_answer, aside_answer_fields, 1, 1),
    SPEC(INIT_RENAME, "renamed", init_done, done_fields, 0, 0),
    SPEC(INIT_REMOVE, "removed", init_done, done_fields, 0, 0),
    SPEC(INIT_MKDIR, "made", init_done, done_fields, 0, 0),
    SPEC(INIT_SPAWN, "spawned", init_spawned, spawned_fields, 0, 0),
    SPEC(INIT_KILL, "killed", init_done, done_fields, 0, 0),
    SPEC(INIT_ERROR, "error", init_error, error_fields, 0, 0),
};

static const struct msg_spec events[] = {
    SPEC(INIT_EXITED, "exited", init_exited, exited_fields, 0, 0),
};

const struct msg_spec *init_request_spec(unsigned verb)
{
    return FIND(requests, verb);
}

const struct msg_spec *init_answer_spec(unsigned verb)
{
    return FIND(answers, verb);
}

const struct msg_spec *init_event_spec(unsigned verb)
{
    return FIND(events, verb);
}
