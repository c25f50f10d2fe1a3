#include "reload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "err.h"
#include "log.h"
#include "logescape.h"
#include "sessionprofile.h"
#include "settings.h"
#include "settingspage.h"

/* What was in it is secret. */
static void wipe(struct buf *b)
{
    if (b->data != NULL)
        explicit_bzero(b->data, b->size);
    buf_free(b);
    *b = (struct buf){ 0 };
}

/* Readers see half a page as such by its digest. */
static int write_page(struct reload *r, struct view blob, struct err *e)
{
    struct buf page;

    buf_init(&page, SETTINGSPAGE_HEAD + SETTINGS_MAX);
    int rc = settingspage_encode(r->version + 1, blob, &page, e);
    struct view v = buf_view(&page);
    for (size_t at = 0; rc == 0 && at < v.n;) {
        ssize_t n = pwrite(r->page_fd, v.p + at, v.n - at, (off_t)at);

        if (n < 0 && errno != EINTR)
            rc = err_sys(e, errno, "write the settings");
        at += n > 0 ? (size_t)n : 0;
    }
    if (rc == 0 && ftruncate(r->page_fd, (off_t)v.n) < 0)
        rc = err_sys(e, errno, "write the settings");
    if (rc == 0)
        r->version++;
    wipe(&page);
    return rc;
}

static int add_table(struct buf *blob, const struct buf *table, struct err *e)
{
    autofree char *text = view_dup(buf_view(table));

    return buf_len(table) > 0 ? settings_add(blob, "profile-table", text, e) : 0;
}

/* Mode 0400 of root: a gateway cannot open what it reads for writing by way of
 * /proc/self/fd, which a memfd's own mode (0777) would let it do. */
static int make_page(struct reload *r, struct err *e)
{
    char path[40];

    r->page_fd = memfd_create("holdcell-settings", MFD_CLOEXEC);
    if (r->page_fd < 0 || fchmod(r->page_fd, 0400) < 0)
        return err_sys(e, errno, "memfd for the settings");
    snprintf(path, sizeof path, "/proc/self/fd/%d", r->page_fd);
    r->read_fd = open(path, O_RDONLY | O_CLOEXEC);
    return r->read_fd < 0 ? err_sys(e, errno, "open the settings for reading") : 0;
}

int reload_open(struct reload *r, struct livefiles *files, struct view fixed, uid_t uid,
                struct err *e)
{
    struct buf blob;

    r->files = *files;
    *files = (struct livefiles){ 0 };
    r->uid = uid;
    r->fixed = fixed.n;
    buf_init(&blob, SETTINGS_MAX);
    int rc = buf_add_view(&blob, fixed) < 0 ? err_set(e, EMSGSIZE, "too many settings") : 0;
    if (rc == 0)
        rc = livefiles_read(&r->files, &blob, e);
    buf_init(&r->table, PROFILES_TEXT + 4096);
    if (rc == 0)
        rc = trial_run(buf_view(&blob), uid, &r->table, e);
    if (rc == 0)
        rc = add_table(&blob, &r->table, e);
    if (rc == 0)
        rc = make_page(r, e);
    if (rc == 0)
        rc = write_page(r, buf_view(&blob), e);
    wipe(&blob);
    return rc;
}

void reload_close(struct reload *r)
{
    livefiles_free(&r->files);
    closep(&r->page_fd);
    closep(&r->read_fd);
    closep(&r->trial.result_fd);
    wipe(&r->tried);
    wipe(&r->table);
    wipe(&r->tried_table);
}

/* The settings that come from options live in the page alone. */
static int read_fixed(const struct reload *r, struct buf *out, struct err *e)
{
    if (buf_reserve(out, r->fixed) < 0)
        return err_set(e, ENOMEM, "no memory for the settings");
    ssize_t n = pread(r->page_fd, buf_tail(out), r->fixed, SETTINGSPAGE_HEAD);
    if (n != (ssize_t)r->fixed)
        return err_set(e, EIO, "read the settings");
    buf_commit(out, r->fixed);
    return 0;
}

static void refused(struct reload *r, const struct err *e)
{
    log_error("reload_refused", "version=%llu error=%s note=\"the old settings stay in force\"",
              (unsigned long long)r->version, LOG_QUOTED(e->msg));
    wipe(&r->tried);
    wipe(&r->tried_table);
}

void reload_begin(struct reload *r)
{
    struct err e = { 0 };

    if (r->files.count == 0) {
        log_info("reload", "note=\"no option names a file that is read again; other options need "
                           "a restart\"");
        return;
    }
    if (r->trial.pid != 0 || r->stage != RELOAD_IDLE) {
        r->again = 1;
        return;
    }
    buf_init(&r->tried, SETTINGS_MAX);
    int rc = read_fixed(r, &r->tried, &e);
    if (rc == 0)
        rc = livefiles_read(&r->files, &r->tried, &e);
    if (rc == 0)
        rc = trial_start(&r->trial, buf_view(&r->tried), r->uid, &e);
    if (rc < 0)
        refused(r, &e);
}

static void tell_published(const struct reload *r)
{
    char names[256] = "";

    for (unsigned i = 0; i < r->files.count; i++) {
        size_t n = strlen(names);

        snprintf(names + n, sizeof names - n, "%s--%s", i > 0 ? " " : "", r->files.at[i].option);
    }
    log_info("reload_published",
             "version=%llu read_again=\"%s\" note=\"other options need a restart\"",
             (unsigned long long)r->version, names);
}

static enum reload_next ask(struct reload *r, enum reload_stage stage)
{
    r->stage = stage;
    r->question++;
    return RELOAD_ASK;
}

/* The end of one reload; the next one, if it was asked for meanwhile, begins. */
static void begin_next(struct reload *r)
{
    r->stage = RELOAD_IDLE;
    if (!r->again)
        return;
    r->again = 0;
    reload_begin(r);
}

static enum reload_next finish(struct reload *r, int rc, const struct err *e)
{
    const int taken = r->stage == RELOAD_ASKING;

    if (rc == 0)
        tell_published(r);
    else
        refused(r, e);
    wipe(&r->tried);
    /* Launcher and gateways would go by different tables. */
    if (rc < 0 && taken)
        return ask(r, RELOAD_TAKING_BACK);
    begin_next(r);
    return rc == 0 ? RELOAD_PUBLISHED : RELOAD_NOTHING;
}

static int publish(struct reload *r, struct err *e)
{
    int rc = add_table(&r->tried, &r->tried_table, e);

    if (rc == 0)
        rc = write_page(r, buf_view(&r->tried), e);
    if (rc < 0)
        return rc;
    wipe(&r->table);
    r->table = r->tried_table;
    r->tried_table = (struct buf){ 0 };
    return 0;
}

enum reload_next reload_reaped(struct reload *r, pid_t pid, int status)
{
    struct err e = { 0 };

    if (r->trial.pid == 0 || pid != r->trial.pid)
        return RELOAD_NOTHING;
    buf_init(&r->tried_table, PROFILES_TEXT + 4096);
    int rc = trial_end(&r->trial, status, &r->tried_table, &e);
    const struct view now = buf_view(&r->table), new = buf_view(&r->tried_table);
    if (rc == 0 && (now.n != new.n || (now.n > 0 && memcmp(now.p, new.p, now.n) != 0)))
        return ask(r, RELOAD_ASKING);
    if (rc == 0)
        rc = publish(r, &e);
    return finish(r, rc, &e);
}

struct view reload_asked(const struct reload *r)
{
    return buf_view(r->stage == RELOAD_TAKING_BACK ? &r->table : &r->tried_table);
}

struct view reload_table(const struct reload *r)
{
    return buf_view(&r->table);
}

static void not_taken(struct reload *r, const char *why)
{
    struct err e = { 0 };

    (void)err_set(&e, EINVAL, "option --profiles: %s", why);
    refused(r, &e);
    begin_next(r);
}

enum reload_next reload_answered(struct reload *r, uint64_t question, const char *refusal)
{
    struct err e = { 0 };

    if (r->stage == RELOAD_IDLE || question != r->question)
        return RELOAD_NOTHING;
    if (r->stage == RELOAD_ASKING && refusal == NULL)
        return finish(r, publish(r, &e), &e);
    if (r->stage == RELOAD_ASKING) {
        not_taken(r, refusal);
        return RELOAD_NOTHING;
    }
    if (refusal != NULL)
        log_error("profiles_not_taken_back",
                  "version=%llu error=%s note=\"the launcher is started again\"",
                  (unsigned long long)r->version, LOG_QUOTED(refusal));
    begin_next(r);
    return refusal != NULL ? RELOAD_RESTART : RELOAD_NOTHING;
}

void reload_unanswered(struct reload *r, const char *why)
{
    if (r->stage == RELOAD_ASKING)
        not_taken(r, why);
    else if (r->stage == RELOAD_TAKING_BACK)
        begin_next(r);
}
