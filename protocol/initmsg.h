/*
 * initmsg - requests to holdcell-init, pid 1 of a sandbox, over the SEQPACKET
 * socket that CREATE returns. For every request init forks a short-lived child
 * that drops to the session's user behind the same walls as a kernel, then acts;
 * so a path is resolved inside the sandbox with the session's rights, never by
 * the gateway. Answers carry the same request number; errors come as INIT_ERROR.
 *
 * Everything that comes back describes the sandbox and is not to be trusted.
 */
#ifndef HC_INITMSG_H
#define HC_INITMSG_H

#include "msgcodec.h"

enum init_verb {
    INIT_OPEN = 1, /* -> descriptor of a regular file (opened O_NONBLOCK, then checked) */
    INIT_STAT,
    INIT_LIST,   /* one directory, a page of entries per answer */
    INIT_ASIDE,  /* new file beside the target -> its name and a descriptor for writing */
    INIT_RENAME, /* makes a file written aside the target, in one step */
    INIT_REMOVE,
    INIT_MKDIR,
    INIT_SPAWN, /* a process of the session's user -> pid inside */
    INIT_KILL, /* signal to a process group that SPAWN made; SIGKILL: to all that descends from it */
    INIT_VERBS_END,

    INIT_ERROR = 64,
    INIT_EXITED = 128, /* event: a spawned process ended */
};

enum {
    INIT_PATH_MAX = 4096,
    INIT_NAME_MAX = 255,
    INIT_PAGE_MAX = 64 * 1024, /* bytes of entries in one LIST answer */
    INIT_ARGV_MAX = 32 * 1024,
    INIT_ENV_MAX = 96 * 1024,
};

enum {
    INIT_OPEN_READ = 1,
    INIT_OPEN_WRITE = 2,
    INIT_OPEN_CREATE = 4,
    INIT_OPEN_EXCL = 8,
    INIT_OPEN_TRUNC = 16
};

/* Relative paths start at /home/user. */
struct init_open {
    struct view path;
    uint32_t flags;
    uint32_t mode; /* permission bits of a new file, 0..0777 */
};
/* Answers of OPEN and STAT; OPEN brings one descriptor. */
struct init_stat {
    uint32_t mode; /* st_mode */
    uint32_t nlink;
    uint64_t size;
    uint64_t mtime_ns;
    uint64_t inode;
};

struct init_path { /* STAT (of the link itself), MKDIR (with its parents) */
    struct view path;
};

struct init_list {
    struct view path;
    uint64_t cursor; /* 0 first, then that of the last answer */
};
/* Each entry: struct init_entry, then name_len bytes of name. */
struct init_entry {
    uint64_t size, mtime_ns;
    uint32_t mode;
    uint32_t name_len;
};
struct init_listed {
    uint64_t cursor; /* 0: that was the last page */
    struct view entries;
};

struct init_aside {
    struct view path; /* the target; its parents are made */
    uint32_t mode;
};
struct init_aside_answer { /* one descriptor, open for writing */
    struct view name;      /* the path to hand to RENAME or REMOVE */
};

struct init_rename {
    struct view from, to;
    uint32_t replace; /* 0: -EEXIST when the target exists */
};

struct init_remove {
    struct view path;
    uint32_t recursive;
};

struct init_spawn { /* three descriptors: its fds 0, 1, 2 */
    struct view argv, env;
    struct view cwd; /* empty: /home/user */
};
struct init_spawned {
    uint32_t pid;
};
struct init_kill {
    uint32_t pid;
    uint32_t signo;
};

struct init_done {
    uint32_t unused;
};
struct init_error {
    uint32_t verb;
    struct view text;
};
struct init_exited {
    uint32_t pid;
    int32_t exit_code; /* -1 when a signal ended it */
    int32_t signo;
};

const struct msg_spec *init_request_spec(unsigned verb);
const struct msg_spec *init_answer_spec(unsigned verb);
const struct msg_spec *init_event_spec(unsigned verb);

#endif
