/* A reload that the launcher has a say in: which of its answers belongs to which question, and what becomes
 * of a table that it took and nobody published. Files and trial are this file's own. */
#include "reload.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "err.h"
#include "settingspage.h"

enum { TRIAL = 77 };

static struct {
    const char *table; /* of the next trial */
    unsigned trials;
} fake;

void livefiles_free(struct livefiles *l)
{
    (void)l;
}

int livefiles_read(const struct livefiles *l, struct buf *out, struct err *e)
{
    (void)l;
    (void)out;
    (void)e;
    return 0;
}

int trial_start(struct trial *t, struct view blob, uid_t uid, struct err *e)
{
    (void)blob;
    (void)uid;
    (void)e;
    t->pid = TRIAL;
    fake.trials++;
    return 0;
}

int trial_end(struct trial *t, int status, struct buf *table, struct err *e)
{
    (void)status;
    (void)e;
    t->pid = 0;
    return buf_add_view(table, view_cstr(fake.table));
}

int trial_run(struct view blob, uid_t uid, struct buf *table, struct err *e)
{
    (void)blob;
    (void)uid;
    (void)table;
    (void)e;
    return 0;
}

static int setup(void **state)
{
    struct reload *r = xcalloc(1, sizeof *r);

    fake.table = "new";
    fake.trials = 0;
    *r = RELOAD_NONE;
    r->files.count = 1;
    r->files.at[0].option = "profiles";
    r->version = 1;
    r->page_fd = memfd_create("page", MFD_CLOEXEC);
    assert_true(r->page_fd >= 0);
    buf_init(&r->table, 4096);
    assert_int_equal(buf_add_view(&r->table, view_cstr("old")), 0);
    *state = r;
    return 0;
}

static int teardown(void **state)
{
    struct reload *r = *state;

    reload_close(r);
    free(r);
    return 0;
}

/* A page that takes nothing. */
static void break_page(struct reload *r)
{
    closep(&r->page_fd);
    r->page_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(r->page_fd >= 0);
}

/* Up to the question; returns its number. */
static uint64_t begin(struct reload *r)
{
    reload_begin(r);
    assert_int_equal(reload_reaped(r, TRIAL, 0), RELOAD_ASK);
    assert_true(view_equals(reload_asked(r), fake.table));
    return r->question;
}

/* Up to the question whether it goes back. */
static uint64_t begin_and_fail(struct reload *r)
{
    const uint64_t first = begin(r);

    break_page(r);
    assert_int_equal(reload_answered(r, first, NULL), RELOAD_ASK);
    assert_true(view_equals(reload_asked(r), "old"));
    assert_true(r->question > first);
    return r->question;
}

static void a_table_is_published_once_the_launcher_has_it(void **state)
{
    struct reload *r = *state;
    const uint64_t q = begin(r);

    assert_int_equal(r->version, 1);
    assert_int_equal(reload_answered(r, q, NULL), RELOAD_PUBLISHED);
    assert_int_equal(r->version, 2);
    assert_true(view_equals(reload_table(r), "new"));
    assert_int_equal(reload_answered(r, q, NULL), RELOAD_NOTHING); /* twice */
    assert_int_equal(r->version, 2);
}

static void a_refused_table_is_not_published_and_the_next_one_is_asked_for(void **state)
{
    struct reload *r = *state;
    const uint64_t q = begin(r);

    reload_begin(r); /* meanwhile */
    assert_int_equal(fake.trials, 1);
    assert_int_equal(reload_answered(r, q, "no wall"), RELOAD_NOTHING);
    assert_int_equal(r->version, 1);
    assert_true(view_equals(reload_table(r), "old"));
    assert_int_equal(fake.trials, 2);
}

static void answers_to_other_questions_decide_nothing(void **state)
{
    struct reload *r = *state;
    const uint64_t first = begin(r);

    assert_int_equal(reload_answered(r, first, "no wall"), RELOAD_NOTHING);
    const uint64_t second = begin(r);
    assert_true(second > first);
    assert_int_equal(reload_answered(r, first, NULL), RELOAD_NOTHING);
    assert_int_equal(reload_answered(r, first, "no wall"), RELOAD_NOTHING);
    assert_int_equal(reload_answered(r, second + 1, NULL), RELOAD_NOTHING);
    assert_int_equal(r->version, 1);
    assert_int_equal(reload_answered(r, second, NULL), RELOAD_PUBLISHED);
}

static void what_was_taken_and_not_published_is_taken_back_before_anything_else(void **state)
{
    struct reload *r = *state;
    const uint64_t back = begin_and_fail(r);

    reload_begin(r);
    assert_int_equal(fake.trials, 1);
    assert_int_equal(reload_answered(r, back - 1, NULL), RELOAD_NOTHING);
    assert_int_equal(fake.trials, 1);
    assert_int_equal(reload_answered(r, back, NULL), RELOAD_NOTHING);
    assert_int_equal(fake.trials, 2); /* it begins now */
    assert_int_equal(r->version, 1);
    assert_true(view_equals(reload_table(r), "old"));
}

static void a_launcher_that_does_not_go_back_is_started_again(void **state)
{
    struct reload *r = *state;
    const uint64_t back = begin_and_fail(r);

    assert_int_equal(reload_answered(r, back, "no wall"), RELOAD_RESTART);
    assert_int_equal(r->version, 1);
    assert_true(view_equals(reload_table(r), "old"));
    assert_int_equal(reload_answered(r, back, "no wall"), RELOAD_NOTHING);
}

static void without_a_launcher_no_question_stays_open(void **state)
{
    struct reload *r = *state;

    begin(r);
    reload_begin(r);
    reload_unanswered(r, "it ended");
    assert_int_equal(r->version, 1);
    assert_int_equal(fake.trials, 2);
    assert_int_equal(reload_reaped(r, TRIAL, 0), RELOAD_ASK);
    break_page(r);
    assert_int_equal(reload_answered(r, r->question, NULL), RELOAD_ASK);
    reload_begin(r);
    reload_unanswered(r, "it ended");
    assert_int_equal(fake.trials, 3);
    reload_unanswered(r, "it ended");
    assert_int_equal(r->trial.pid, TRIAL); /* which asks nobody yet */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_table_is_published_once_the_launcher_has_it),
        TEST(a_refused_table_is_not_published_and_the_next_one_is_asked_for),
        TEST(answers_to_other_questions_decide_nothing),
        TEST(what_was_taken_and_not_published_is_taken_back_before_anything_else),
        TEST(a_launcher_that_does_not_go_back_is_started_again),
        TEST(without_a_launcher_no_question_stays_open),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
