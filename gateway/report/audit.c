#include "audit.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "err.h"
#include "log.h"
#include "loop.h"
#include "metrics.h"
#include "origin.h"

enum {
    QUEUE_MAX = 1024 * 1024, /* bytes that wait for the disk */
    RETRY_MS = 1000,
    SLOW_US = 500000,
};

static struct {
    struct loop *loop; /* borrowed; NULL: off */
    struct loop_timer *retry;
    int required;
    int fd;    /* owned; -1 while there is none */
    int known; /* digest and next_seq are those of the chain */
    int error; /* of the last write; 0: it went well */
    uint64_t lost, told_lost;
    uint64_t next_seq;
    char digest[AUDITLINE_DIGEST];
    struct buf queue; /* whole lines */
    size_t cut;       /* bytes of the first one that are in the file */
    int unfinished;   /* the file ends in the middle of a line of somebody else's: it ends first */
} file = { .fd = -1 };

int audit_on(void)
{
    return file.loop != NULL;
}

void audit_start(struct loop *l, int required)
{
    file.loop = l;
    file.required = required;
    file.next_seq = 1;
    strcpy(file.digest, AUDITLINE_FIRST);
    buf_init(&file.queue, QUEUE_MAX);
}

int audit_writable(void *unused, struct err *e)
{
    (void)unused;
    if (file.fd < 0)
        return err_set(e, HC_EAUDIT, "there is no audit file");
    if (file.error != 0)
        return err_set(e, HC_EAUDIT, "the audit file cannot be written: %s", strerror(file.error));
    return 0;
}

/* ---- writing ---- */

static void on_retry(void *arg);

static void failed(int code)
{
    static struct log_limit limit;

    metrics_count(METRIC_AUDIT_FAILURES, 0);
    if (file.error == 0 || log_allowed(&limit, 1))
        log_error("audit_write", "error=\"%s\" waiting_bytes=%zu lost=%llu", strerror(code),
                  buf_len(&file.queue), (unsigned long long)file.lost);
    file.error = code;
    if (file.retry == NULL)
        file.retry = loop_timer_start(file.loop, RETRY_MS, RETRY_MS, on_retry, NULL);
}

/* Lines leave the queue whole: one that was cut is written anew when the file changes. */
static void written(struct view queue, size_t n)
{
    size_t total = file.cut + n;
    const uint8_t *nl = memrchr(queue.p, '\n', total);
    size_t whole = nl != NULL ? (size_t)(nl + 1 - queue.p) : 0;

    buf_consume(&file.queue, whole);
    file.cut = total - whole;
}

/* A crash cut the last line; what comes stands for itself. On a disk that is still full
 * this waits like the lines behind it. */
static void end_line(void)
{
    ssize_t n;

    if (!file.unfinished || file.fd < 0)
        return;
    do
        n = write(file.fd, "\n", 1);
    while (n < 0 && errno == EINTR);
    if (n == 1)
        file.unfinished = 0;
    else
        failed(n < 0 ? errno : EIO);
}

/* All of the queue, or what the disk takes; the rest goes on exactly where it was cut. */
static void flush(void)
{
    uint64_t began_us = clock_monotonic_us();

    end_line();
    if (file.unfinished)
        return;
    while (file.fd >= 0 && buf_len(&file.queue) > 0) {
        struct view v = buf_view(&file.queue);
        ssize_t n = write(file.fd, v.p + file.cut, v.n - file.cut);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            failed(n < 0 ? errno : EIO);
            return;
        }
        written(v, (size_t)n);
    }
    if (file.fd < 0)
        return;
    uint64_t took_us = clock_monotonic_us() - began_us;
    metrics_observe(METRIC_AUDIT_TIME, 0, took_us);
    if (took_us >= SLOW_US)
        log_warn("audit_slow", "duration_us=%llu", (unsigned long long)took_us);
    if (file.error != 0)
        log_info("audit_writes_again", "lost=%llu", (unsigned long long)file.lost);
    file.error = 0;
    file.retry = loop_timer_close(file.retry);
}

/* ---- lines ---- */

void audit_begin(struct auditline *l, const char *event, const char *principal,
                 const struct origin *o)
{
    auditline_begin(l, clock_realtime_us(), file.next_seq, event);
    auditline_string(l, "principal", principal);
    if (o == NULL)
        return;
    auditline_string(l, "request_id", o->request_id);
    auditline_string(l, "peer", o->peer);
}

static void append(struct auditline *l)
{
    struct err e = { 0 };

    /* Without a file there is no chain yet that the line could have a place in. */
    if (!file.known)
        auditline_drop(l);
    if (!file.known || auditline_end(l, file.digest, &file.queue, &e) < 0) {
        file.lost++;
        metrics_count(METRIC_AUDIT_LOST, 0);
        return;
    }
    file.next_seq++;
    metrics_count(METRIC_AUDIT_RECORDS, 0);
}

/* How many lines are missing is told in the place where they would be. */
static void tell_lost(void)
{
    struct auditline l;
    uint64_t lost = file.lost - file.told_lost;

    if (lost == 0 || buf_len(&file.queue) > 0)
        return;
    audit_begin(&l, "records_lost", "", NULL);
    auditline_uint(&l, "count", lost);
    file.told_lost = file.lost;
    append(&l);
    flush();
}

static void on_retry(void *arg)
{
    (void)arg;
    flush();
    tell_lost();
}

void audit_note(struct auditline *l)
{
    append(l);
    flush();
    tell_lost();
}

int audit_intent(struct auditline *l, struct err *e)
{
    /* A disk that is full is not asked for each of many. */
    if (file.required && file.error != 0) {
        auditline_drop(l);
        metrics_count(METRIC_AUDIT_REFUSED, 0);
        return audit_writable(NULL, e);
    }
    audit_note(l);
    if (!file.required)
        return 0;
    int rc = audit_writable(NULL, e);
    if (rc < 0)
        metrics_count(METRIC_AUDIT_REFUSED, 0);
    return rc;
}

/* ---- the file ---- */

static int read_tail(int fd, struct audit_tail *ret, struct err *e)
{
    autobuf struct buf tail = { 0 };
    off_t size = lseek(fd, 0, SEEK_END), from = size > AUDITLINE_TAIL ? size - AUDITLINE_TAIL : 0;

    buf_init(&tail, AUDITLINE_TAIL);
    if (size < 0)
        return err_sys(e, errno, "audit file");
    while (from < size) {
        if (buf_reserve(&tail, (size_t)(size - from)) < 0)
            return err_set(e, ENOMEM, "no memory for the end of the audit file");
        ssize_t n = pread(fd, buf_tail(&tail), (size_t)(size - from), from);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_sys(e, n < 0 ? errno : EIO, "read the audit file");
        buf_commit(&tail, (size_t)n);
        from += n;
    }
    return auditline_tail(buf_view(&tail), ret, e);
}

static int same_file(int a, int b)
{
    struct stat x, y;

    return a >= 0 && fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}

/* A new gateway goes on with the chain that is in the file; one that is running goes on
 * with its own, also in a new file. */
static int take_over(int fd, int *ret_unfinished, struct err *e)
{
    struct audit_tail tail;
    int rc = read_tail(fd, &tail, e);

    if (rc < 0)
        return rc;
    *ret_unfinished = tail.unfinished;
    if (!file.known) {
        file.next_seq = tail.next_seq;
        memcpy(file.digest, tail.digest, sizeof file.digest);
    }
    file.known = 1;
    return 0;
}

int audit_take_file(int fd, struct err *e)
{
    autoclose int new_fd = fd;
    struct auditline l;
    int unfinished = 0, rotated = file.fd >= 0;

    if (same_file(file.fd, new_fd)) {
        flush();
        return 0;
    }
    if (rotated)
        flush(); /* what the old one still takes belongs into it */
    int rc = take_over(new_fd, &unfinished, e);
    if (rc < 0)
        return rc;
    closep(&file.fd);
    file.fd = take_fd(&new_fd);
    file.cut = 0;
    file.unfinished = unfinished;
    audit_begin(&l, "audit_opened", "", NULL);
    auditline_string(&l, "after", rotated ? "rotation" : "start");
    audit_note(&l);
    return 0;
}

void audit_stop(void)
{
    struct auditline l;

    if (!audit_on())
        return;
    audit_begin(&l, "audit_closed", "", NULL);
    audit_note(&l);
    file.retry = loop_timer_close(file.retry);
    closep(&file.fd);
    file.fd = -1;
    buf_free(&file.queue);
    file.loop = NULL;
    file.known = file.error = 0;
    file.lost = file.told_lost = 0;
    file.cut = 0;
    file.unfinished = 0;
}
