#include "hosthints.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "cgfile.h"
#include "cleanup.h"
#include "err.h"

struct setting {
    const char *path; /* below /proc */
    const char *name; /* as sysctl(8) has it */
    long least;       /* this or more is good; exactly: only this */
    int exactly;
};

static const struct {
    enum hostwall wall;
    struct setting setting;
} settings[] = {
    { HOSTWALL_HOST_PTRACE_SCOPE,
      { "sys/kernel/yama/ptrace_scope", "kernel.yama.ptrace_scope", 1, 0 } },
    { HOSTWALL_HOST_DMESG_RESTRICT,
      { "sys/kernel/dmesg_restrict", "kernel.dmesg_restrict", 1, 0 } },
    { HOSTWALL_HOST_KPTR_RESTRICT, { "sys/kernel/kptr_restrict", "kernel.kptr_restrict", 1, 0 } },
    { HOSTWALL_HOST_UNPRIVILEGED_BPF,
      { "sys/kernel/unprivileged_bpf_disabled", "kernel.unprivileged_bpf_disabled", 1, 0 } },
    { HOSTWALL_HOST_PERF_PARANOID,
      { "sys/kernel/perf_event_paranoid", "kernel.perf_event_paranoid", 2, 0 } },
    { HOSTWALL_HOST_LEGACY_TIOCSTI,
      { "sys/dev/tty/legacy_tiocsti", "dev.tty.legacy_tiocsti", 0, 1 } },
    { HOSTWALL_HOST_IO_URING,
      { "sys/kernel/io_uring_disabled", "kernel.io_uring_disabled", 1, 0 } },
};

static const struct setting links[] = {
    { "sys/fs/protected_hardlinks", "fs.protected_hardlinks", 1, 0 },
    { "sys/fs/protected_symlinks", "fs.protected_symlinks", 1, 0 },
    { "sys/fs/protected_fifos", "fs.protected_fifos", 1, 0 },
    { "sys/fs/protected_regular", "fs.protected_regular", 1, 0 },
};

static void look_at(int proc_fd, const struct setting *s, struct probe_result *ret)
{
    char text[32], *end;
    int r = cgfile_read(proc_fd, s->path, text, sizeof text);

    if (r == -ENOENT) {
        probe_say(ret, HOSTWALL_ABSENT, "this kernel has no %s", s->name);
        return;
    }
    long value = r == 0 ? strtol(text, &end, 10) : 0;
    if (r < 0 || end == text)
        probe_say(ret, HOSTWALL_WEAKER, "%s cannot be read: %s", s->name,
                  strerror(r < 0 ? -r : EINVAL));
    else
        probe_say(ret,
                  (s->exactly ? value == s->least : value >= s->least) ? HOSTWALL_PRESENT
                                                                       : HOSTWALL_WEAKER,
                  "%s is %ld", s->name, value);
}

/* The first that is not as it should be speaks for all. */
static void look_at_links(int proc_fd, struct probe_result *ret)
{
    struct probe_result absent = { .state = HOSTWALL_PRESENT };

    for (unsigned i = 0; i < sizeof links / sizeof *links; i++) {
        look_at(proc_fd, &links[i], ret);
        if (ret->state == HOSTWALL_WEAKER)
            return;
        if (ret->state == HOSTWALL_ABSENT)
            absent = *ret;
    }
    if (absent.state == HOSTWALL_ABSENT)
        *ret = absent;
    else
        probe_say(ret, HOSTWALL_PRESENT, "fs.protected_* are set");
}

static void look_at_core(int proc_fd, struct probe_result *ret)
{
    char text[160];

    if (cgfile_read(proc_fd, "sys/kernel/core_pattern", text, sizeof text) < 0) {
        probe_say(ret, HOSTWALL_ABSENT, "this kernel has no kernel.core_pattern");
        return;
    }
    text[strcspn(text, "\n")] = '\0';
    if (text[0] == '|')
        probe_say(ret, HOSTWALL_WEAKER, "kernel.core_pattern starts a program: %.120s", text + 1);
    else if (text[0] == '@') /* since Linux 6.16; the limit is about files and pipes */
        probe_say(ret, HOSTWALL_WEAKER, "kernel.core_pattern is a socket of the host: %.120s",
                  text + 1);
    else
        probe_say(ret, HOSTWALL_PRESENT, "kernel.core_pattern is a file's name");
}

static void look_at_swap(int proc_fd, struct probe_result *ret)
{
    char text[512];
    const char *line = NULL;

    if (cgfile_read(proc_fd, "swaps", text, sizeof text) == 0)
        line = strchr(text, '\n'); /* the first one is a heading */
    if (line == NULL || line[1] == '\0')
        probe_say(ret, HOSTWALL_PRESENT, "none");
    else
        probe_say(ret, HOSTWALL_WEAKER, "there is some: %.*s", (int)strcspn(line + 1, " \t"),
                  line + 1);
}

static int is_since(const char *release, int wanted_major, int wanted_minor)
{
    int major = 0, minor = 0;

    (void)sscanf(release, "%d.%d", &major, &minor);
    return major > wanted_major || (major == wanted_major && minor >= wanted_minor);
}

static void look_at_kernel(const char *release, struct probe_result *ret)
{
    enum { TESTED_MAJOR = 6, TESTED_MINOR = 1 };

    if (is_since(release, TESTED_MAJOR, TESTED_MINOR))
        probe_say(ret, HOSTWALL_PRESENT, "Linux %.64s", release);
    else
        probe_say(ret, HOSTWALL_WEAKER, "Linux %.64s: older than any that holdcell is tested with",
                  release);
}

/* A file whose first bytes no loader knows was looked for as a module, binfmt-1234, until 6.14. */
static void look_at_modprobe(int proc_fd, const char *release, struct probe_result *ret)
{
    char program[160], disabled[8] = "";

    if (cgfile_read(proc_fd, "sys/kernel/modprobe", program, sizeof program) < 0) {
        probe_say(ret, HOSTWALL_ABSENT, "this kernel has no kernel.modprobe");
        return;
    }
    program[strcspn(program, "\n")] = '\0';
    if (cgfile_read(proc_fd, "sys/kernel/modules_disabled", disabled, sizeof disabled) == 0 &&
        disabled[0] == '1')
        probe_say(ret, HOSTWALL_PRESENT, "kernel.modules_disabled is 1");
    else if (program[0] == '\0')
        probe_say(ret, HOSTWALL_PRESENT, "kernel.modprobe is empty");
    else if (is_since(release, 6, 14))
        probe_say(ret, HOSTWALL_PRESENT, "this kernel does not look for formats in modules");
    else
        probe_say(ret, HOSTWALL_WEAKER, "kernel.modprobe is %.120s", program);
}

static void look_at_rights(struct probe_result *ret)
{
    enum { OPTION = 83 }; /* SO_PASSRIGHTS */
    autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, OPTION, &(int){ 0 }, sizeof(int)) == 0)
        probe_say(ret, HOSTWALL_PRESENT, "SO_PASSRIGHTS can be switched off");
    else
        probe_say(ret, HOSTWALL_WEAKER, "no SO_PASSRIGHTS: %s", strerror(errno));
}

void hosthints_look(int proc_fd, const char *release, enum hostwall hint, struct probe_result *ret)
{
    *ret = (struct probe_result){ .state = HOSTWALL_PRESENT };
    for (unsigned i = 0; i < sizeof settings / sizeof *settings; i++)
        if (settings[i].wall == hint) {
            look_at(proc_fd, &settings[i].setting, ret);
            return;
        }
    if (hint == HOSTWALL_HOST_KERNEL)
        look_at_kernel(release, ret);
    else if (hint == HOSTWALL_HOST_PROTECTED_LINKS)
        look_at_links(proc_fd, ret);
    else if (hint == HOSTWALL_HOST_CORE_PATTERN)
        look_at_core(proc_fd, ret);
    else if (hint == HOSTWALL_HOST_SWAP)
        look_at_swap(proc_fd, ret);
    else if (hint == HOSTWALL_HOST_MODPROBE)
        look_at_modprobe(proc_fd, release, ret);
    else if (hint == HOSTWALL_HOST_PASSRIGHTS)
        look_at_rights(ret);
    else
        check(!"a hint that nobody looks for");
}
