/* Options: what is taken, from which source, and what is told when it is wrong. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "err.h"
#include "options.h"

struct values {
    int flag;
    const char *text;
    uint64_t number, milli;
};

static const struct option_spec specs[] = {
    { "Things", NULL, OPTION_GROUP, 0, 0, 0, NULL },
    { "flag", NULL, OPTION_FLAG, offsetof(struct values, flag), 0, 0, "a flag" },
    { "text", "TEXT", OPTION_STRING, offsetof(struct values, text), 0, 0, "a text" },
    { "Others", NULL, OPTION_GROUP, 0, 0, 0, NULL },
    { "number", "N", OPTION_NUMBER, offsetof(struct values, number), 1, 9, "a number" },
    { "milli", "SECONDS", OPTION_MILLI, offsetof(struct values, milli), 0, 5000, "a time" },
    { "later", NULL, OPTION_LATER, 0, 0, 0, NULL },
};
enum { COUNT = sizeof specs / sizeof specs[0] };

struct fixture {
    struct values v;
    struct option_mark marks[COUNT];
    struct option_reader r;
    struct err e;
    char *foreign; /* what the other program's names were given */
};

static int take_foreign(void *arg, const char *name, const char *value, const char *next,
                        int *ret_used, struct err *e)
{
    struct fixture *f = arg;

    if (strcmp(name, "Their.bad") == 0)
        return err_set(e, EINVAL, "bad");
    if (strcmp(name, "Their.name") != 0)
        return 0;
    *ret_used = value == NULL;
    free(f->foreign);
    f->foreign = xstrdup(value != NULL ? value : next != NULL ? next : "(none)");
    return 1;
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);

    f->r = (struct option_reader){ specs, COUNT, &f->v, f->marks, take_foreign, f };
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    free(f->foreign);
    free(f);
    return 0;
}

#define READ(f, ...)                                                                  \
    ({                                                                                \
        char *argv_[] = { (char *)(uintptr_t) "serve", __VA_ARGS__ };                 \
        options_read(&(f)->r, (int)(sizeof argv_ / sizeof argv_[0]), argv_, &(f)->e); \
    })
#define WORD(text) ((char *)(uintptr_t)(text))

static void the_command_line_fills_the_struct(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(READ(f, WORD("--flag"), WORD("--text=a=b"), WORD("--number"), WORD("3"),
                          WORD("--milli=1.25")),
                     0);
    assert_int_equal(f->v.flag, 1);
    assert_string_equal(f->v.text, "a=b");
    assert_int_equal(f->v.number, 3);
    assert_int_equal(f->v.milli, 1250);
    assert_string_equal(options_mark(&f->r, "number")->label, "option --number");
    assert_int_equal(options_mark(&f->r, "flag")->rank, OPTION_BY_USER);
    assert_int_equal(READ(f, WORD("--number=4")), 0); /* the last one counts */
    assert_int_equal(f->v.number, 4);
}

static void wrong_words_are_told(void **state)
{
    static const struct {
        const char *word, *says;
    } rows[] = {
        { "--numbr=1", "unknown option --numbr; did you mean --number?" },
        { "--Things", "unknown option --Things" }, /* a heading is no option */
        { "--number=x", "option --number: 'x' is not a number" },
        { "--number=10", "option --number: '10' is not in 1..9" },
        { "--number=-1", "option --number: '-1' is not in 1..9" },
        { "--number=-", "option --number: '-' is not a number" },
        { "--number=", "option --number: '' is not a number" },
        { "--number=.", "option --number: '.' is not a number" },
        { "--number=1.5", "option --number: '1.5' is not a whole number" },
        { "--number=+5", "option --number: '+5' does not begin with a digit" },
        { "--milli=-0.5", "option --milli: '-0.5' is not in 0..5" },
        { "--milli=.5", "option --milli: '.5' does not begin with a digit" },
        { "--milli=0.0001", "option --milli: '0.0001' has more than three decimals" },
        { "--milli=1.5.2", "option --milli: '1.5.2' is not a number" },
        { "--milli=5.001", "option --milli: '5.001' is not in 0..5" },
        { "--flag=1", "option --flag takes no value" },
        { "--text", "option --text needs a value" },
        { "--later", "option --later is not supported yet" },
        { "word", "unexpected argument 'word'" },
        { "-x", "unexpected argument '-x'" },
        { "--Their.bad", "bad" },
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(READ(f, WORD(rows[i].word)), -EINVAL);
        assert_string_equal(f->e.msg, rows[i].says);
    }
}

static void names_of_another_program_are_asked_for(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(READ(f, WORD("--Their.name=x"), WORD("--flag")), 0);
    assert_string_equal(f->foreign, "x");
    assert_int_equal(READ(f, WORD("-Their.name"), WORD("y"), WORD("--number=5")), 0);
    assert_string_equal(f->foreign, "y");
    assert_int_equal(f->v.number, 5);
}

static void the_command_line_silences_the_environment(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(READ(f, WORD("--number=3")), 0);
    assert_int_equal(options_set(&f->r, "number", "X_NUMBER", OPTION_BY_ENVIRONMENT, "x", &f->e),
                     0);
    assert_int_equal(f->v.number, 3);
    assert_int_equal(options_set(&f->r, "text", "X_TEXT", OPTION_BY_ENVIRONMENT, "t", &f->e), 0);
    assert_string_equal(f->v.text, "t");
    assert_string_equal(options_mark(&f->r, "text")->label, "X_TEXT");
    assert_int_equal(READ(f, WORD("--text=u")), 0); /* in whichever order they are read */
    assert_string_equal(f->v.text, "u");
}

static int set_env(struct fixture *f, const char *name, const char *label, const char *value)
{
    return options_set(&f->r, name, label, OPTION_BY_ENVIRONMENT, value, &f->e);
}

static void two_variables_must_agree(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(set_env(f, "milli", "A_MILLI", "1.5"), 0);
    assert_int_equal(set_env(f, "milli", "B_MILLI", "1.500"), 0);
    assert_int_equal(set_env(f, "milli", "B_MILLI", "2"), -EINVAL);
    assert_string_equal(f->e.msg, "B_MILLI contradicts A_MILLI");
    assert_int_equal(f->v.milli, 1500);
    assert_int_equal(set_env(f, "flag", "A_FLAG", "True"), 0);
    assert_int_equal(set_env(f, "flag", "B_FLAG", "1"), 0);
    assert_int_equal(set_env(f, "flag", "B_FLAG", "no"), -EINVAL);
    assert_int_equal(f->v.flag, 1);
    assert_int_equal(set_env(f, "text", "A_TEXT", "a"), 0);
    assert_int_equal(set_env(f, "text", "B_TEXT", "A"), -EINVAL);
}

static void a_variable_is_told_by_its_own_name(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(set_env(f, "number", "X_NUMBER", "0"), -EINVAL);
    assert_string_equal(f->e.msg, "X_NUMBER: '0' is not in 1..9");
    assert_int_equal(set_env(f, "flag", "X_FLAG", "maybe"), -EINVAL);
    assert_string_equal(f->e.msg, "X_FLAG: 'maybe' is none of true, false, yes, no, on, off, 1, 0");
    assert_int_equal(set_env(f, "later", "X_LATER", "1"), -EINVAL);
    assert_string_equal(f->e.msg, "X_LATER is not supported yet");
}

static void truth_has_many_words(void **state)
{
    static const char *const yes[] = { "1", "true", "True", "YES", "on" };
    static const char *const no[] = { "0", "false", "False", "No", "OFF" };
    static const char *const neither[] = { "", "2", "tru", "truely", "none" };
    int v;

    (void)state;
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(options_truth(yes[i], &v), 0);
        assert_int_equal(v, 1);
        assert_int_equal(options_truth(no[i], &v), 0);
        assert_int_equal(v, 0);
        assert_int_equal(options_truth(neither[i], &v), -EINVAL);
    }
}

static void the_help_has_headings(void **state)
{
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);

    (void)state;
    options_help(specs, COUNT, to);
    fclose(to);
    assert_string_equal(text, "Things:\n"
                              "  --flag           a flag\n"
                              "  --text TEXT      a text\n"
                              "\nOthers:\n"
                              "  --number N       a number\n"
                              "  --milli SECONDS  a time\n");
    free(text);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_command_line_fills_the_struct),
        TEST(wrong_words_are_told),
        TEST(names_of_another_program_are_asked_for),
        TEST(the_command_line_silences_the_environment),
        TEST(two_variables_must_agree),
        TEST(a_variable_is_told_by_its_own_name),
        TEST(truth_has_many_words),
        TEST(the_help_has_headings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
