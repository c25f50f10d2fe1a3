#include "script.h"

#include <czmq.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "err.h"
#include "initmsg.h"
#include "kernelconn.h"
#include "launcherconn.h"
#include "settings.h"
#include "settingspage.h"

#define KEY      "11111111-222222222222222222222222"
#define CHANNELS 5
#define WAIT_MS  60000
#define SESSIONS 8

static const char *const channel_names[CHANNELS] = { "shell", "control", "stdin", "iopub", "hb" };

struct script {
    struct launcherconn launcher;
    struct kernelconn *kernel;        /* owned */
    uint64_t sandbox, made[SESSIONS]; /* the one in use; all in the order of their creation */
    unsigned made_count;
    uint32_t number, generation;
    int init_fd, run_fd, kernel_run_fd, log_fd;
    char answer[256];
    char path[32768]; /* PATH=..., the runtime's programs first */
};

typedef int command_fn(struct script *s, char *args, struct err *e);

static uint64_t option(const char *args, const char *name, uint64_t fallback)
{
    const char *at = args != NULL ? strstr(args, name) : NULL;

    return at != NULL ? strtoull(at + strlen(name), NULL, 10) : fallback;
}

static int cmd_create(struct script *s, char *args, struct err *e)
{
    struct launch_create ask = { .profile = VIEW_STR("default"), .data_all = 1 };
    struct launch_created got;

    ask.limits.memory_bytes = option(args, "memory_mb=", 0) << 20;
    ask.limits.home_bytes = option(args, "home_mb=", 0) << 20;
    ask.limits.pids = (uint32_t)option(args, "pids=", 0);
    int rc = launcherconn_ask(&s->launcher, LAUNCH_CREATE, &ask, NULL, 0, &got, e);
    if (rc < 0)
        return rc;
    s->sandbox = got.sandbox;
    if (s->made_count < SESSIONS)
        s->made[s->made_count++] = got.sandbox;
    s->run_fd = take_fd(&s->launcher.fds[0]);
    s->init_fd = take_fd(&s->launcher.fds[1]);
    printf("created: memory=%" PRIu64 " pids=%u\n", got.limits.memory_bytes, got.limits.pids);
    return 0;
}

static int listen_at(const char *dir, const char *name, struct err *e)
{
    struct sockaddr_un a = { .sun_family = AF_UNIX };
    autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(a.sun_path, sizeof a.sun_path, "%s/%s", dir, name);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) < 0 || listen(fd, 64) < 0)
        return err_sys(e, errno, "listen at %s", a.sun_path);
    return take_fd(&fd);
}

static int connection_memfd(uint32_t number, uint32_t generation, int files)
{
    char json[1024], ip[64];
    int fd = memfd_create("connection", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    snprintf(ip, sizeof ip, files ? "/run/kernel/%u-%u/s" : "fds", number, generation);
    int n =
        snprintf(json, sizeof json,
                 "{\"transport\": \"ipc\", \"ip\": \"%s\", \"shell_port\": 1, \"control_port\": 2, "
                 "\"stdin_port\": 3, \"iopub_port\": 4, \"hb_port\": 5, \"key\": \"" KEY "\", "
                 "\"signature_scheme\": \"hmac-sha256\", \"kernel_name\": \"python3\"}",
                 ip);
    check(fd >= 0 && write(fd, json, (size_t)n) == n);
    check(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) == 0);
    return fd;
}

/* What the kernel writes to fds 1 and 2; returns the write end. */
static int log_pipe(struct script *s)
{
    int ends[2];

    check(pipe2(ends, O_CLOEXEC) == 0);
    if (s->log_fd >= 0)
        close(s->log_fd);
    s->log_fd = ends[0];
    check(fcntl(s->log_fd, F_SETFL, O_NONBLOCK) == 0);
    return ends[1];
}

static void print_log(struct script *s)
{
    char text[16384];
    ssize_t n = read(s->log_fd, text, sizeof text);

    if (n > 0)
        printf("log: %.*s\n", (int)n, text);
}

static int add_strings(struct buf *blob, char *words)
{
    char *rest, *word;
    int rc = 0;

    for (word = strtok_r(words, " ", &rest); word != NULL && rc == 0;
         word = strtok_r(NULL, " ", &rest))
        rc = msg_strings_add(blob, word);
    return rc;
}

/* Resolves one socket of a foreign kernel as the gateway must: never through a link. */
static int resolve(int run_fd, int channel, char *end, size_t n, struct err *e)
{
    static const int ports[CHANNELS] = { 1, 2, 3, 4, 5 };
    struct open_how how = { .flags = O_PATH | O_CLOEXEC,
                            .resolve =
                                RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
    char name[16];
    struct stat st;

    snprintf(name, sizeof name, "s-%d", ports[channel]);
    for (int i = 0; i < WAIT_MS / 50; i++) {
        int fd = (int)syscall(SYS_openat2, run_fd, name, &how, sizeof how);

        if (fd >= 0 && fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode)) {
            snprintf(end, n, "ipc:///proc/self/fd/%d", fd);
            return 0;
        }
        if (fd >= 0)
            close(fd);
        zclock_sleep(50);
    }
    return err_set(e, ETIMEDOUT, "socket %s did not appear", name);
}

static int connect_kernel(struct script *s, const char *dir, struct err *e)
{
    char ends[CHANNELS][160];

    for (int i = 0; i < CHANNELS; i++) {
        snprintf(ends[i], sizeof ends[i], "ipc://%s/%s", dir, channel_names[i]);
        int rc = dir[0] == '\0' ? resolve(s->kernel_run_fd, i, ends[i], sizeof ends[i], e) : 0;
        if (rc < 0)
            return rc;
    }
    struct kernelconn_ends to = { ends[0], ends[1], ends[2], ends[3], KEY };
    kernelconn_free(s->kernel);
    s->kernel = kernelconn_new(&to, e);
    if (s->kernel == NULL)
        return -e->code;
    int rc = kernelconn_wait_ready(s->kernel, WAIT_MS, e);
    if (rc == 0)
        printf("ready: kernel=%u generation=%u\n", s->number, s->generation);
    else
        print_log(s);
    return rc;
}

static int ask_start(struct script *s, const char *spec, int files, char *argv, const char *dir,
                     int wait, struct err *e)
{
    autobuf struct buf argv_blob, env;
    int fds[2 + CHANNELS], n = 0;
    struct launch_started got;

    buf_init(&argv_blob, LAUNCH_ARGV_MAX);
    buf_init(&env, LAUNCH_ENV_MAX);
    int rc = add_strings(&argv_blob, argv);
    if (rc == 0)
        rc = msg_strings_add(&env, "HOME=/home/user");
    if (rc == 0)
        rc = msg_strings_add(&env, s->path);
    if (rc == 0)
        rc = msg_strings_add(&env, "MPLBACKEND=module://matplotlib_inline.backend_inline");
    fds[n++] = connection_memfd(s->number, s->generation, files);
    fds[n++] = log_pipe(s);
    for (int i = 0; !files && rc >= 0 && i < CHANNELS; i++) {
        rc = listen_at(dir, channel_names[i], e);
        if (rc >= 0)
            fds[n++] = rc;
    }
    struct launch_start ask = {
        .sandbox = s->sandbox,
        .kernel = s->number,
        .generation = s->generation,
        .flags = files ? 0 : LAUNCH_SOCKETS_FD,
        .spec_name = view_cstr(spec),
        .cwd = VIEW_STR("/home/user"),
        .argv = buf_view(&argv_blob),
        .env = buf_view(&env),
    };
    if (rc >= 0 && wait)
        rc = launcherconn_ask(&s->launcher, LAUNCH_START_KERNEL, &ask, fds, (unsigned)n, &got, e);
    else if (rc >= 0)
        rc = launcherconn_send(&s->launcher, LAUNCH_START_KERNEL, &ask, fds, (unsigned)n, e);
    while (n > 0)
        close(fds[--n]);
    if (rc == 0 && files && wait)
        s->kernel_run_fd = take_fd(&s->launcher.fds[0]);
    return rc;
}

static int start(struct script *s, char *args, int wait, struct err *e)
{
    char spec[128], how[16];
    int used = 0;

    if (args == NULL ||
        sscanf(args, "%127s %u %u %15s %n", spec, &s->number, &s->generation, how, &used) < 4)
        return err_set(e, EINVAL, "SPEC KERNEL GENERATION fds|files ARGV");
    int files = strcmp(how, "files") == 0;
    char dir[] = "/tmp/zconsole-XXXXXX";
    check(mkdtemp(dir) != NULL);
    int rc = ask_start(s, spec, files, args + used, dir, wait, e);
    if (rc == 0 && wait)
        rc = connect_kernel(s, files ? "" : dir, e);
    for (int i = 0; i < CHANNELS; i++) {
        char path[64];

        snprintf(path, sizeof path, "%s/%s", dir, channel_names[i]);
        (void)unlink(path);
    }
    (void)rmdir(dir);
    return rc;
}

static int cmd_start(struct script *s, char *args, struct err *e)
{
    return start(s, args, 1, e);
}

/* As start, but nobody waits: the answer is printed (`late: ...`) among what comes later. */
static int cmd_launch(struct script *s, char *args, struct err *e)
{
    return start(s, args, 0, e);
}

/* Kernels started later look for their program in N directories more, which are not
 * there: that many calls of exec that fail come before the one that does not. */
static int cmd_detour(struct script *s, char *args, struct err *e)
{
    static const char step[] = "/-:";
    unsigned n = args != NULL ? (unsigned)atoi(args) : 0;
    size_t at = strlen("PATH="), more = n * (sizeof step - 1), have = strlen(s->path + at) + 1;

    if (n > sizeof s->path || at + more + have > sizeof s->path)
        return err_set(e, EINVAL, "detour NUMBER");
    memmove(s->path + at + more, s->path + at, have);
    for (size_t i = 0; i < more; i += sizeof step - 1)
        memcpy(s->path + at + i, step, sizeof step - 1);
    return 0;
}

/* The session made first is number 1. */
static int cmd_use(struct script *s, char *args, struct err *e)
{
    unsigned n = args != NULL ? (unsigned)atoi(args) : 0;

    if (n < 1 || n > s->made_count)
        return err_set(e, EINVAL, "use NUMBER");
    s->sandbox = s->made[n - 1];
    return 0;
}

/* `\n` in a script line is a newline of the code. */
static char *unescape(char *code)
{
    char *to = code;

    for (char *from = code; *from != '\0'; from++) {
        if (from[0] == '\\' && from[1] == 'n') {
            *to++ = '\n';
            from++;
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
    return code;
}

static const char *answer_of(const struct script *s)
{
    return s->answer[0] != '\0' ? s->answer : NULL;
}

static int cmd_run(struct script *s, char *args, struct err *e)
{
    return kernelconn_run(s->kernel, unescape(args), answer_of(s), WAIT_MS, e);
}

static int cmd_begin(struct script *s, char *args, struct err *e)
{
    return kernelconn_start(s->kernel, unescape(args), e);
}

static int cmd_finish(struct script *s, char *args, struct err *e)
{
    (void)args;
    return kernelconn_finish(s->kernel, answer_of(s), WAIT_MS, e);
}

static int cmd_answer(struct script *s, char *args, struct err *e)
{
    (void)e;
    snprintf(s->answer, sizeof s->answer, "%s", args != NULL ? args : "");
    return 0;
}

static int cmd_signal(struct script *s, char *args, struct err *e)
{
    struct launch_signal ask = { s->sandbox, s->number, s->generation, 0, 0 };
    struct launch_done got;

    ask.signo = args == NULL                    ? 0
                : strncmp(args, "INT", 3) == 0  ? SIGINT
                : strncmp(args, "TERM", 4) == 0 ? SIGTERM
                : strncmp(args, "KILL", 4) == 0 ? SIGKILL
                                                : SIGSTOP;
    ask.group = args != NULL && strstr(args, "group") != NULL;
    return launcherconn_ask(&s->launcher, LAUNCH_SIGNAL, &ask, NULL, 0, &got, e);
}

static int cmd_seal(struct script *s, char *args, struct err *e)
{
    struct launch_kernel_ref ask = { s->sandbox, s->number, s->generation };
    struct launch_done got;

    (void)args;
    int rc = launcherconn_ask(&s->launcher, LAUNCH_SEAL, &ask, NULL, 0, &got, e);
    if (rc == 0)
        printf("sealed\n");
    return rc;
}

static int cmd_status(struct script *s, char *args, struct err *e)
{
    struct launch_status ask = { s->sandbox, 0 };
    struct launch_status_answer got;

    (void)args;
    int rc = launcherconn_ask(&s->launcher, LAUNCH_STATUS, &ask, NULL, 0, &got, e);
    if (rc == 0)
        printf("status: memory=%d limit=%" PRIu64 " peak=%d oom_kills=%" PRIu64 " pids=%" PRIu64
               " cpu=%d\n",
               got.memory_bytes > 0, got.memory_limit_bytes, got.memory_peak_bytes > 0,
               got.oom_kills, got.pids, got.cpu_usec > 0);
    return rc;
}

static int cmd_note(struct script *s, char *args, struct err *e)
{
    struct launch_note ask = { s->sandbox, view_cstr(args != NULL ? args : "") };
    struct launch_done got;
    int fds[1] = { s->init_fd };

    return launcherconn_ask(&s->launcher, LAUNCH_NOTE, &ask, fds, 1, &got, e);
}

static int cmd_list(struct script *s, char *args, struct err *e)
{
    struct launch_list ask = { 0 };
    struct launch_listed got;

    (void)args;
    for (;;) {
        int rc = launcherconn_ask(&s->launcher, LAUNCH_LIST, &ask, NULL, 0, &got, e);

        if (rc < 0 || got.sandbox == 0)
            return rc;
        printf("listed: note=%.*s fds=%u", (int)got.note.n, (const char *)got.note.p,
               s->launcher.fd_count);
        for (size_t i = 0; i + sizeof(struct launch_kernel_info) <= got.kernels.n;
             i += sizeof(struct launch_kernel_info)) {
            struct launch_kernel_info k;

            memcpy(&k, got.kernels.p + i, sizeof k);
            printf(" kernel=%u-%u running=%u", k.kernel, k.generation, k.running);
        }
        printf("\n");
        s->sandbox = ask.after = got.sandbox;
    }
}

static int cmd_stop(struct script *s, char *args, struct err *e)
{
    int session = args != NULL && strcmp(args, "session") == 0;
    struct launch_stop ask = { s->sandbox, session ? 0 : s->number, session ? 0 : s->generation };
    struct launch_done got;

    int rc = launcherconn_ask(&s->launcher, LAUNCH_STOP, &ask, NULL, 0, &got, e);
    if (rc == 0)
        printf("stopped: %s\n", session ? "session" : "kernel");
    return rc;
}

static int cmd_wait(struct script *s, char *args, struct err *e)
{
    unsigned verb = args == NULL                  ? 0
                    : strcmp(args, "exited") == 0 ? LAUNCH_KERNEL_EXITED
                    : strcmp(args, "oom") == 0    ? LAUNCH_OUT_OF_MEMORY
                                                  : LAUNCH_SANDBOX_GONE;

    return launcherconn_event(&s->launcher, verb, WAIT_MS, e);
}

static int cmd_file(struct script *s, char *args, struct err *e)
{
    struct launcherconn init;
    struct init_open ask = { .path = view_cstr(args), .flags = INIT_OPEN_READ };
    autobuf struct buf out;
    char text[4096];

    launcherconn_init(&init, s->init_fd);
    buf_init(&out, MSG_MAX);
    int rc = msg_encode(init_request_spec(INIT_OPEN), 1, 0, &ask, 0, &out, e);
    if (rc == 0 && send(s->init_fd, buf_view(&out).p, buf_len(&out), MSG_NOSIGNAL) < 0)
        rc = err_sys(e, errno, "send to init");
    if (rc == 0)
        rc = launcherconn_packet(&init, WAIT_MS, e);
    if (rc == 0 && init.fd_count == 1) {
        ssize_t n = read(init.fds[0], text, sizeof text - 1);
        printf("file: %.*s\n", n > 0 ? (int)n : 0, text);
    } else if (rc == 0) {
        printf("file: refused\n");
    }
    launcherconn_free(&init);
    return rc;
}

static int cmd_pause(struct script *s, char *args, struct err *e)
{
    (void)s;
    (void)e;
    zclock_sleep(args != NULL ? atoi(args) : 0);
    return 0;
}

/* Until somebody else has made the file. */
static int cmd_await(struct script *s, char *args, struct err *e)
{
    (void)s;
    for (int i = 0; i < WAIT_MS / 50; i++) {
        if (args != NULL && access(args, F_OK) == 0)
            return 0;
        zclock_sleep(50);
    }
    return err_set(e, ETIMEDOUT, "await: there is no such file");
}

static int cmd_deadline(struct script *s, char *args, struct err *e)
{
    struct launch_deadline ask = { s->sandbox, 0 };
    struct launch_done got;

    ask.monotonic_ms = (uint64_t)zclock_mono() + (uint64_t)(args != NULL ? atoi(args) : 0);
    return launcherconn_ask(&s->launcher, LAUNCH_DEADLINE, &ask, NULL, 0, &got, e);
}

static int cmd_crash(struct script *s, char *args, struct err *e)
{
    (void)args;
    (void)!send(s->launcher.fd, "garbage", 7, MSG_NOSIGNAL);
    struct pollfd end = { .fd = s->launcher.fd, .events = POLLRDHUP };
    (void)!poll(&end, 1, WAIT_MS); /* the launcher ends us */
    return err_set(e, HC_EGONE, "the launcher dropped a malformed packet");
}

static const struct {
    const char *name;
    command_fn *run;
} commands[] = {
    { "create", cmd_create }, { "start", cmd_start },       { "run", cmd_run },
    { "begin", cmd_begin },   { "finish", cmd_finish },     { "answer", cmd_answer },
    { "signal", cmd_signal }, { "seal", cmd_seal },         { "status", cmd_status },
    { "note", cmd_note },     { "list", cmd_list },         { "stop", cmd_stop },
    { "wait", cmd_wait },     { "file", cmd_file },         { "crash", cmd_crash },
    { "pause", cmd_pause },   { "deadline", cmd_deadline }, { "launch", cmd_launch },
    { "use", cmd_use },       { "detour", cmd_detour },     { "await", cmd_await },
};

static int run_line(struct script *s, char *line, struct err *e)
{
    char *args = strchr(line, ' ');

    if (args != NULL)
        *args++ = '\0';
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(commands[i].name, line) != 0)
            continue;
        int rc = commands[i].run(s, args, e);
        if (rc < 0 && rc != -HC_EGONE && rc != -ETIMEDOUT) {
            printf("refused: %s: %s\n", line, e->msg);
            return 0;
        }
        return rc;
    }
    return err_set(e, EINVAL, "unknown command '%s'", line);
}

static int read_settings(int fd, struct buf *blob, struct err *e)
{
    ssize_t n = 1;

    for (off_t at = 0; n > 0; at += n) {
        int rc = buf_reserve(blob, 65536);
        if (rc < 0)
            return rc;
        n = pread(fd, buf_tail(blob), 65536, at);
        if (n > 0)
            buf_commit(blob, (size_t)n);
    }
    struct view found;
    uint64_t version;
    int rc = settingspage_decode(buf_view(blob), &version, &found, e);
    if (rc == 0) {
        buf_truncate(blob, SETTINGSPAGE_HEAD + found.n);
        buf_consume(blob, SETTINGSPAGE_HEAD);
    }
    return rc;
}

int script_run(int launcher_fd, int settings_fd, int ready_fd, struct err *e)
{
    struct script s = { .init_fd = -1, .run_fd = -1, .kernel_run_fd = -1, .log_fd = -1 };
    autobuf struct buf blob;
    struct launch_list ask = { 0 };
    struct launch_listed listed;

    buf_init(&blob, SETTINGS_MAX + 65536 + SETTINGSPAGE_HEAD);
    launcherconn_init(&s.launcher, launcher_fd);
    int rc = read_settings(settings_fd, &blob, e);
    if (rc == 0)
        rc = launcherconn_ask(&s.launcher, LAUNCH_LIST, &ask, NULL, 0, &listed, e);
    if (rc < 0)
        return rc;
    (void)!write(ready_fd, "", 1);
    close(ready_fd);

    snprintf(s.path, sizeof s.path, "PATH=%s/bin:/usr/bin:/bin",
             settings_text(buf_view(&blob), "runtime", ""));
    /* Sandboxes that live already: a gateway before this one ended. */
    char *text = strdup(
        settings_text(buf_view(&blob), listed.sandbox != 0 ? "env.SCRIPT2" : "env.SCRIPT", ""));
    char *rest;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL && rc == 0;
         line = strtok_r(NULL, "\n", &rest))
        rc = run_line(&s, line, e);
    free(text);
    if (rc == 0) {
        printf("script: done\n");
        /* Until the server stops; events that come are nobody's business any more. */
        while (launcherconn_packet(&s.launcher, -1, e) != -HC_EGONE)
            ;
    } else {
        printf("script: %s\n", e != NULL ? e->msg : "");
    }
    kernelconn_free(s.kernel);
    launcherconn_free(&s.launcher);
    return rc;
}
