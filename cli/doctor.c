/*
 * `holdcell doctor`: has holdcell-launcher try every wall, and tells what it found. Status: 0 what the
 * level demands is there, 1 something of it is missing, 2 wrong use.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "buf.h"
#include "children.h"
#include "command.h"
#include "doctorreport.h"
#include "environment.h"
#include "err.h"
#include "instance.h"
#include "options.h"
#include "optionvalue.h"
#include "siblings.h"
#include "spawn.h"

enum {
    LINE_MS = 150000, /* the launcher gives each wall a minute, and what it left as much */
    END_MS = 10000,
    LINES_MAX = 64 * 1024,
    JSON_MAX = 256 * 1024,
    WIDTH = 100, /* where it is no terminal */
    ARGS_MAX = 16,
};

struct doctor_options {
    int help, json;
    const char *isolation, *accept_missing, *cgroup_parent, *state_dir, *runtime;
    const char *home, *workspaces;
    uint64_t fds;
};

#define TEXT(name, metavar, member, help)                                                 \
    {                                                                                     \
        name, metavar, OPTION_STRING, offsetof(struct doctor_options, member), 0, 0, help \
    }
static const struct option_spec specs[] = {
    { "help", NULL, OPTION_FLAG, offsetof(struct doctor_options, help), 0, 0, "show this list" },
    { "json", NULL, OPTION_FLAG, offsetof(struct doctor_options, json), 0, 0,
      "one JSON object instead of the table" },
    TEXT("isolation", "LEVEL", isolation, "what is demanded: namespaces or hardened (hardened)"),
    TEXT("accept-missing", "WALL,...", accept_missing, "walls that may be missing (none)"),
    TEXT("cgroup-parent", "DIR", cgroup_parent, "as of `holdcell serve`"),
    TEXT("state-dir", "DIR", state_dir, "as of `holdcell serve` (/var/lib/holdcell)"),
    TEXT("runtime", "DIR", runtime, "as of `holdcell serve`"),
    TEXT("home", "WORD", home, "as of `holdcell serve`: disk demands homes on disk (auto)"),
    TEXT("workspaces", "DIR", workspaces,
         "as of `holdcell serve`: demands that they can lie there"),
    { "fds", "N", OPTION_NUMBER, offsetof(struct doctor_options, fds), 64, 1 << 20,
      "as of `holdcell serve` (4096)" },
};
enum { SPEC_COUNT = sizeof specs / sizeof specs[0] };

static void usage(void)
{
    printf("usage: holdcell doctor [OPTION...]\n\n"
           "Tries every wall that sandboxes are made of, in processes of its own, and tells of "
           "each whether\nit holds on this host, what it is for, what its absence means and what "
           "can be done. Needs root;\nleaves nothing behind. Each option but --json is a variable "
           "too: HOLDCELL_ISOLATION ...\nStatus: 0 what the level demands is there, 1 something "
           "of it is missing, 2 wrong use.\n\n");
    options_help(specs, SPEC_COUNT, stdout);
}

static int read_options(int argc, char **argv, struct doctor_options *o,
                        struct hostwall_policy *policy, struct err *e)
{
    struct option_mark marks[SPEC_COUNT];
    const struct option_reader r = {
        .specs = specs, .count = SPEC_COUNT, .out = o, .marks = marks
    };

    memset(marks, 0, sizeof marks);
    int rc = options_read(&r, argc, argv, e);
    if (rc < 0 || o->help)
        return rc < 0 ? rc : 0;
    /* What its server would have, but for the form of the answer. */
    const struct option_reader ours = {
        .specs = specs + 2, .count = SPEC_COUNT - 2, .out = o, .marks = marks + 2
    };
    rc = environment_read(&ours, e);
    *policy = (struct hostwall_policy){ .level = ISOLATION_HARDENED };
    if (rc == 0 && o->isolation != NULL && (rc = isolation_of(o->isolation, &policy->level, e)) < 0)
        err_wrap(e, "option --isolation");
    if (rc == 0 && (rc = hostwall_policy_accept(policy, o->accept_missing, e)) < 0)
        err_wrap(e, "option --accept-missing");
    if (rc == 0)
        rc = optionvalue_home("home", o->home, e);
    if (rc == 0)
        rc = optionvalue_workspaces("workspaces", o->workspaces, e);
    if (o->home != NULL && strcmp(o->home, "disk") == 0)
        policy->wanted |= HOSTWALL_BIT(HOSTWALL_DISK_HOME);
    if (o->workspaces != NULL)
        policy->wanted |= HOSTWALL_BIT(HOSTWALL_IDMAPPED_MOUNT);
    return rc;
}

struct args {
    char *list[ARGS_MAX + 1];
    unsigned count;
};

static void add(struct args *a, const char *name, const char *value)
{
    if (value == NULL)
        return;
    check(a->count < ARGS_MAX && asprintf(&a->list[a->count], "%s%s", name, value) >= 0);
    a->count++;
}

static void free_args(struct args *a)
{
    for (unsigned i = 0; i < a->count; i++)
        free(a->list[i]);
}

/* The lines as they come; the launcher's end is the end. */
static int read_lines(int fd, struct buf *text, struct err *e)
{
    for (;;) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        char part[4096];
        int n = poll(&p, 1, LINE_MS);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_set(e, ETIMEDOUT, "holdcell-launcher does not go on");
        ssize_t got = read(fd, part, sizeof part);
        if (got < 0)
            return err_sys(e, errno, "read from holdcell-launcher");
        if (got == 0)
            return 0;
        if (buf_add(text, part, (size_t)got) < 0)
            return err_set(e, EMSGSIZE, "holdcell-launcher says too much");
    }
}

static int take_lines(struct doctorreport *d, const struct buf *text, struct err *e)
{
    struct view v = buf_view(text);
    autofree char *copy = xcalloc(1, v.n + 1);

    memcpy(copy, v.p, v.n);
    for (char *line = copy, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        int rc = doctorreport_line(d, line, e);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Ends it and whatever it left: they are ours, as subreaper. */
static void end_launcher(int pid)
{
    (void)spawn_wait(pid, END_MS);
    while (children_kill_all(0) > 0 && waitpid(-1, NULL, __WALL) > 0)
        ;
}

static int run_launcher(struct args *a, struct doctorreport *d, struct err *e)
{
    autobuf struct buf text;
    int p[2];

    buf_init(&text, LINES_MAX);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 || pipe2(p, O_CLOEXEC) < 0)
        return err_sys(e, errno, "prepare for holdcell-launcher");
    int pid = spawn_program(a->list, &p[1], 1, e);
    close(p[1]);
    int rc = pid < 0 ? pid : read_lines(p[0], &text, e);
    close(p[0]);
    if (pid > 0)
        end_launcher(pid);
    return rc < 0 ? rc : take_lines(d, &text, e);
}

/* The number names the groups and ids; without a runtime the host's own software stands in. */
static int try_walls(const struct doctor_options *o, struct doctorreport *d, struct err *e)
{
    struct siblings s;
    struct instance slot = INSTANCE_NONE;
    struct args a = { .count = 0 };
    char number[16], fds[24];
    int rc = siblings_programs(&s, e), runtime = 0;

    if (rc == 0)
        rc = instance_borrow_slot(&slot, e);
    if (rc == 0 && o->runtime != NULL)
        rc = runtime = siblings_runtime(o->runtime, &s, e);
    else if (rc == 0)
        runtime = siblings_runtime(NULL, &s, NULL);
    if (rc == 0) {
        snprintf(number, sizeof number, "%u", slot.slot);
        snprintf(fds, sizeof fds, "%llu", (unsigned long long)o->fds);
        add(&a, "", s.launcher);
        add(&a, "--doctor-fd=", "3");
        add(&a, "--slot=", number);
        add(&a, "--init=", s.init);
        add(&a, "--runtime=", runtime == 0 ? s.runtime : "/usr/bin");
        add(&a, "--no-runtime", runtime == 0 ? NULL : "");
        add(&a, "--state-dir=", o->state_dir != NULL ? o->state_dir : "/var/lib/holdcell");
        add(&a, "--cgroup-parent=", o->cgroup_parent);
        add(&a, "--isolation=", o->isolation);
        add(&a, "--accept-missing=", o->accept_missing);
        add(&a, "--workspaces=", o->workspaces);
        add(&a, "--fds=", o->fds > 0 ? fds : NULL);
        rc = run_launcher(&a, d, e);
        free_args(&a);
    }
    instance_close(&slot);
    return rc;
}

static unsigned columns(void)
{
    struct winsize w;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) < 0 || w.ws_col == 0)
        return WIDTH;
    return w.ws_col;
}

static int print_json(const struct doctorreport *d, struct err *e)
{
    autobuf struct buf text;

    buf_init(&text, JSON_MAX);
    int rc = doctorreport_json(d, &text, e);
    if (rc == 0) {
        struct view v = buf_view(&text);

        fwrite(v.p, 1, v.n, stdout);
        fputc('\n', stdout);
    }
    return rc;
}

int command_doctor(int argc, char **argv)
{
    struct doctor_options o = { 0 };
    struct doctorreport d = { .policy = { .level = ISOLATION_HARDENED } };
    struct err e = { 0 };
    int rc = read_options(argc, argv, &o, &d.policy, &e);

    if (rc < 0) {
        fprintf(stderr, "holdcell doctor: %s\n", e.msg);
        return EXIT_USAGE;
    }
    if (o.help) {
        usage();
        return 0;
    }
    if (geteuid() != 0)
        rc = err_set(&e, EPERM, "must be started as root, as the server; try sudo");
    if (rc == 0)
        rc = try_walls(&o, &d, &e);
    if (rc < 0) {
        fprintf(stderr, "holdcell doctor: %s\n", e.msg);
        return 1;
    }
    doctorreport_finish(&d);
    if (!o.json)
        doctorreport_table(&d, columns(), stdout);
    else if (print_json(&d, &e) < 0)
        fprintf(stderr, "holdcell doctor: %s\n", e.msg);
    if (fflush(stdout) == EOF)
        fprintf(stderr, "holdcell doctor: write: %s\n", strerror(errno));
    return doctorreport_refused(&d) != 0;
}
