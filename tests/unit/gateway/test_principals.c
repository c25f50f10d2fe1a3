/* Principals: what their file may say, what it may not and how that is told, and whose a token is. */
#include "principals.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "buf.h"
#include "err.h"
#include "hex.h"

#define HASH_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HASH_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define NOW    1800000000 /* 2027-01-15T08:00:00Z */

static const struct principals_maxima maxima = {
    .max_kernels = 10,
    .limits = { .memory_bytes = (uint64_t)1024 << 20,
                .home_bytes = (uint64_t)512 << 20,
                .cpu_millis = 2000,
                .pids = 100 },
    .times = { .cell_ms = 60000 },
};

static struct principals *parse(const char *text, struct err *e)
{
    struct principals *t = principals_new();

    if (principals_parse(t, view_cstr(text), &maxima, e) < 0)
        return principals_free(t);
    return t;
}

static const struct principal *by(const struct principals *t, uint8_t fill, uint64_t now)
{
    uint8_t digest[PRINCIPAL_DIGEST];

    memset(digest, fill, sizeof digest);
    return principals_by_token(t, digest, now);
}

static void a_line_becomes_a_principal(void **state)
{
    (void)state;
    struct err e = { 0 };
    struct principals *t = parse(
        "# people\n\n"
        "  {\"name\": \"alice@example.org\", \"sha256\": \"" HASH_A "\", \"note\": \"of the lab\","
        " \"profile\": \"default\", \"limits\": {\"max_kernels\": 3, \"memory_mb\": 512,"
        " \"cpus\": 0.5, \"pids\": 64, \"disk_mb\": 100, \"cell_timeout\": 1.5,"
        " \"max_lifetime\": 3600}}\r\n"
        "{\"name\": \"wall\", \"role\": \"observer\", \"observes\": \"*\", \"sha256\": [\"" HASH_B
        "\"]}",
        &e);

    assert_string_equal(e.msg, "");
    assert_non_null(t);
    assert_int_equal(principals_count(t), 2);
    const struct principal *p = by(t, 0xaa, NOW);
    assert_non_null(p);
    assert_string_equal(p->name, "alice@example.org");
    assert_int_equal(p->role, ROLE_FULL);
    assert_int_equal(p->max_kernels, 3);
    assert_true(p->limits.memory_bytes == (uint64_t)512 << 20);
    assert_true(p->limits.home_bytes == (uint64_t)100 << 20);
    assert_int_equal(p->limits.cpu_millis, 500);
    assert_int_equal(p->limits.pids, 64);
    assert_true(p->times.cell_ms == 1500 && p->times.stdin_ms == 0 && p->times.life_ms == 3600000);
    p = by(t, 0xbb, NOW);
    assert_non_null(p);
    assert_int_equal(p->role, ROLE_OBSERVER);
    assert_null(by(t, 0xcc, NOW));
    assert_ptr_equal(principals_by_name(t, "wall", NOW), p);
    assert_null(principals_by_name(t, "Wall", NOW));
    principals_free(t);
}

static void each_mistake_is_told_with_line_and_field_and_no_value(void **state)
{
    (void)state;
#define NAMED "{\"name\": \"a\", \"sha256\": [], "
    static const struct {
        const char *line, *told;
    } cases[] = {
        { "nonsense", "line 2: no JSON object on one line" },
        { "[1]", "no JSON object on one line" },
        { "{\"name\": \"a\",", "no JSON object on one line" },
        { "{} {}", "no JSON object on one line" },
        { "{}", "field 'name' is missing" },
        { "{\"name\": \"a\", \"name\": \"b\", \"sha256\": []}", "a field is there twice" },
        { "{\"name\": \"a\"}", "field 'sha256' is missing" },
        { "{\"name\": \"\", \"sha256\": []}", "field 'name' has to be" },
        { "{\"name\": \"-a\", \"sha256\": []}", "field 'name' has to be" },
        { "{\"name\": \"a b\", \"sha256\": []}", "field 'name' has to be" },
        { "{\"name\": \"a/b\", \"sha256\": []}", "field 'name' has to be" },
        { "{\"name\": \"\\u00e4\", \"sha256\": []}", "field 'name' has to be" },
        { "{\"name\": 7, \"sha256\": []}", "field 'name' has to be" },
        { "{\"name\": \"" HASH_A "\", \"sha256\": []}", "field 'name' has to be" },
        { "{\"name\": \"a\", \"sha256\": \"secret-token\"}", "field 'sha256' has to be 64" },
        { "{\"name\": \"a\", \"sha256\": [\"secret-token\"]}", "field 'sha256' has to be 64" },
        { "{\"name\": \"a\", \"sha256\": [3]}", "field 'sha256' has to be 64" },
        { "{\"name\": \"a\", \"sha256\": \"A" HASH_A "\"}", "field 'sha256' has to be 64" },
        { "{\"name\": \"a\", \"sha256\": [1,2,3,4,5,6,7,8,9]}", "has more than 8 hashes" },
        { "{\"name\": \"a\", \"sha256\": [\"" HASH_A "\", \"" HASH_A "\"]}",
          "field 'sha256': the same hash" },
        { "{\"name\": \"first\", \"sha256\": []}", "field 'name': 'first' is there already" },
        { "{\"name\": \"a\", \"sha256\": \"" HASH_B "\"}", "field 'sha256': the same hash" },
        { NAMED "\"role\": \"admin\"}", "field 'role' has to be" },
        { NAMED "\"role\": \"observer\"}", "field 'observes' is missing" },
        { NAMED "\"observes\": \"b\"}", "field 'observes' is for the role" },
        { NAMED "\"role\": \"observer\", \"observes\": \"/\"}", "field 'observes' has to be" },
        { NAMED "\"role\": \"proxy\", \"limits\": {}}", "field 'limits' is for the role" },
        { NAMED "\"profile\": \"gpu\"}", "field 'profile' has to be" },
        { NAMED "\"note\": 1}", "field 'note' has to be text" },
        { NAMED "\"expires\": 1}", "field 'expires' has to be a time" },
        { NAMED "\"expires\": \"tomorrow\"}", "field 'expires' has to be a time" },
        { NAMED "\"expires\": \"2027-02-30\"}", "field 'expires' has to be a time" },
        { NAMED "\"expires\": \"2027-01-31T12:00:00\"}", "field 'expires' has to be a time" },
        { NAMED "\"expires\": \"2027-01-31T12:00:00+01:00\"}", "field 'expires' has to be a time" },
        { NAMED "\"expires\": \"2027-01-31T12:00:00Zsecret-token\"}", "has to be a time" },
        { NAMED "\"limits\": []}", "field 'limits' has to be an object" },
        { NAMED "\"limits\": {\"memory\": 1}}",
          "field 'limits' has an unknown name in it: memory" },
        { NAMED "\"limits\": {\"secret-token\": 1}}", "an unknown name in it: (not shown)" },
        { NAMED "\"limits\": {\"max_kernels\": 0}}", "field 'limits.max_kernels' has to be" },
        { NAMED "\"limits\": {\"max_kernels\": 1.5}}", "field 'limits.max_kernels' has to be" },
        { NAMED "\"limits\": {\"max_kernels\": 11}}", "limits.max_kernels' is above the server's" },
        { NAMED "\"limits\": {\"memory_mb\": 1025}}", "limits.memory_mb' is above the server's" },
        { NAMED "\"limits\": {\"memory_mb\": 63}}", "field 'limits.memory_mb' has to be" },
        { NAMED "\"limits\": {\"memory_mb\": 99.5}}", "field 'limits.memory_mb' has to be" },
        { NAMED "\"limits\": {\"disk_mb\": 513}}", "limits.disk_mb' is above the server's" },
        { NAMED "\"limits\": {\"cpus\": 2.01}}",
          "limits.cpus' is above the server's own limit, 2" },
        { NAMED "\"limits\": {\"cpus\": \"1\"}}", "field 'limits.cpus' has to be" },
        { NAMED "\"limits\": {\"cpus\": 1e400}}", "no JSON object" },
        { NAMED "\"limits\": {\"cell_timeout\": 60.1}}",
          "limits.cell_timeout' is above the server's own limit, 60" },
        { NAMED "\"limits\": {\"stdin_timeout\": 0}}", "field 'limits.stdin_timeout' has to be" },
        { NAMED "\"limits\": {\"max_lifetime\": \"1\"}}", "field 'limits.max_lifetime' has to be" },
        { NAMED "\"limits\": {\"pids\": -5}}", "field 'limits.pids' has to be" },
        { NAMED "\"token\": \"secret-token\"}", "no field with the name token" },
        { NAMED "\"secret-token\": 1}", "no field with the name (not shown)" },
        { NAMED "secret-token: 1}", "no JSON object" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        struct err e = { 0 };

        snprintf(text, sizeof text, "{\"name\": \"first\", \"sha256\": \"" HASH_B "\"}\n%s\n",
                 cases[i].line);
        if (parse(text, &e) != NULL || strstr(e.msg, cases[i].told) == NULL ||
            strncmp(e.msg, "line 2: ", 8) != 0)
            fail_msg("%s: %s", cases[i].line, e.msg);
        assert_null(strstr(e.msg, "secret"));
        assert_null(strstr(e.msg, "aaaa"));
        assert_null(strstr(e.msg, "bbbb"));
    }
}

static void profiles_are_named_as_the_server_has_them(void **state)
{
    static const struct profiles table = { 2, { { .name = "small" }, { .name = "large" } } };
    static const struct principals_maxima has = { .profiles = &table, .profiles_version = 7 };
    static const struct {
        const char *fields, *word; /* word: of the error; NULL: taken */
        const char *profile;
        uint32_t bits;
        int default_too, all;
    } rows[] = {
        { "\"profile\": \"default\"", NULL, "", 0, 0, 0 },
        { "\"profile\": \"large\"", NULL, "large", 0, 0, 0 },
        { "\"profiles\": [\"large\", \"default\"]", NULL, "", 2, 1, 0 },
        { "\"profiles\": \"*\"", NULL, "", 0, 0, 1 },
        { "\"profiles\": []", NULL, "", 0, 0, 0 },
        { "\"profile\": \"larg\"", "field 'profile' has to be", "", 0, 0, 0 },
        { "\"profile\": 1", "field 'profile' has to be", "", 0, 0, 0 },
        { "\"profiles\": [\"small\", \"x\"]", "field 'profiles' has a name (number 2)", "", 0, 0,
          0 },
        { "\"profiles\": [1]", "field 'profiles' has to be", "", 0, 0, 0 },
        { "\"profiles\": \"small\"", "field 'profiles' has to be", "", 0, 0, 0 },
        { "\"role\": \"proxy\", \"profile\": \"small\"", "field 'profile' is for the role", "", 0,
          0, 0 },
    };

    (void)state;
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct principals *t = principals_new();
        struct err e = { 0 };
        char line[256];

        snprintf(line, sizeof line, "{\"name\": \"a\", \"sha256\": [], %s}", rows[i].fields);
        int rc = principals_parse(t, view_cstr(line), &has, &e);
        if (rc != (rows[i].word != NULL ? -EINVAL : 0) ||
            (rows[i].word != NULL && strstr(e.msg, rows[i].word) == NULL))
            fail_msg("%s: %s", rows[i].fields, e.msg);
        if (rc == 0) {
            const struct principal *p = principals_by_name(t, "a", NOW);

            assert_string_equal(p->profile, rows[i].profile);
            assert_int_equal(p->profiles, rows[i].bits);
            assert_int_equal(p->default_too, rows[i].default_too);
            assert_int_equal(p->profiles_all, rows[i].all);
            if (strstr(rows[i].fields, "profiles") != NULL)
                assert_int_equal(p->profiles_version, 7);
        }
        principals_free(t);
    }
}

/* A table may change, and who was given each of the old one was not given those of the new one. */
static void each_of_the_most_profiles_is_not_all(void **state)
{
    struct profiles table = { .count = PROFILES_MAX };
    const struct principals_maxima has = { .profiles = &table, .profiles_version = 7 };
    struct principals *t = principals_new();
    struct err e = { 0 };
    char line[1024] = "{\"name\": \"a\", \"sha256\": [], \"profiles\": [";

    (void)state;
    for (unsigned i = 0; i < PROFILES_MAX; i++) {
        size_t n = strlen(line);

        snprintf(table.at[i].name, sizeof table.at[i].name, "p%u", i);
        snprintf(line + n, sizeof line - n, "%s\"p%u\"", i > 0 ? ", " : "", i);
    }
    strcat(line, "]}");
    if (principals_parse(t, view_cstr(line), &has, &e) != 0)
        fail_msg("%s", e.msg);
    const struct principal *p = principals_by_name(t, "a", NOW);
    assert_int_equal(p->profiles, UINT32_MAX);
    assert_int_equal(p->profiles_all, 0);
    assert_int_equal(p->default_too, 0);
    assert_int_equal(p->profiles_version, 7);
    principals_free(t);
}

static void data_directories_are_named_as_the_server_has_them(void **state)
{
    (void)state;
    static const struct principals_maxima has = { .data = "one,two,three" };
    static const struct {
        const char *data; /* behind the colon */
        int rc, some;
        uint32_t bits;
        const char *word;
    } rows[] = {
        { "[]", 0, 1, 0, "" },
        { "[\"two\"]", 0, 1, 2, "" },
        { "[\"three\", \"one\"]", 0, 1, 5, "" },
        { "[\"four\"]", -EINVAL, 0, 0, "number 1" },
        { "[\"one\", \"on\"]", -EINVAL, 0, 0, "number 2" },
        { "[\"one,two\"]", -EINVAL, 0, 0, "a list of names" },
        { "\"one\"", -EINVAL, 0, 0, "has to be a list" },
        { "[1]", -EINVAL, 0, 0, "a list of names" },
    };

    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct principals *t = principals_new();
        struct err e = { 0 };
        char line[256];

        snprintf(line, sizeof line, "{\"name\": \"a\", \"sha256\": [], \"data\": %s}",
                 rows[i].data);
        if (principals_parse(t, view_cstr(line), &has, &e) != rows[i].rc ||
            strstr(e.msg, rows[i].word) == NULL)
            fail_msg("%s: %s", rows[i].data, e.msg);
        if (rows[i].rc == 0) {
            const struct principal *p = principals_by_name(t, "a", NOW);

            assert_int_equal(p->data_some, rows[i].some);
            assert_int_equal(p->data, rows[i].bits);
        }
        principals_free(t);
    }
    /* Who says nothing sees all, and `token check` knows no server. */
    struct principals *t = principals_new();
    assert_int_equal(
        principals_parse(t, view_cstr("{\"name\": \"a\", \"sha256\": []}"), &has, NULL), 0);
    assert_int_equal(principals_by_name(t, "a", NOW)->data_some, 0);
    principals_free(t);
    t = principals_new();
    assert_int_equal(
        principals_parse(t, view_cstr("{\"name\": \"a\", \"sha256\": [], \"data\": [\"x\"]}"), NULL,
                         NULL),
        0);
    principals_free(t);
}

static void a_cut_line_is_never_half_a_principal(void **state)
{
    (void)state;
    static const char whole[] = "{\"name\": \"a\", \"role\": \"observer\", \"observes\": \"b\", "
                                "\"expires\": \"2027-01-31\", \"sha256\": [\"" HASH_A "\"]}";

    for (size_t n = 1; n < sizeof whole; n++) {
        struct principals *t = principals_new();
        int rc = principals_parse(t, (struct view){ (const uint8_t *)whole, n }, NULL, NULL);

        assert_int_equal(rc, n == sizeof whole - 1 ? 0 : -EINVAL);
        principals_free(t);
    }
}

static void a_nul_and_a_missing_end_of_line_are_seen(void **state)
{
    (void)state;
    static const char text[] = "{\"name\": \"a\", \"sha256\": []}\0";
    struct principals *t = principals_new();
    struct err e = { 0 };

    assert_int_equal(
        principals_parse(t, (struct view){ (const uint8_t *)text, sizeof text }, NULL, &e),
        -EINVAL);
    assert_string_equal(e.msg, "line 1: there is a NUL byte");
    principals_free(t);
}

static void too_many_principals_are_refused(void **state)
{
    (void)state;
    struct principals *t = principals_new();
    struct principal p = { .role = ROLE_FULL };
    int rc = 0;

    for (unsigned i = 0; i <= PRINCIPALS_MAX && rc == 0; i++) {
        uint8_t hash[1][PRINCIPAL_DIGEST] = { { (uint8_t)i, (uint8_t)(i >> 8) } };

        snprintf(p.name, sizeof p.name, "p%u", i);
        rc = principals_add(t, &p, (const uint8_t(*)[PRINCIPAL_DIGEST])hash, 1, 0, NULL);
    }
    assert_int_equal(rc, -EINVAL);
    assert_int_equal(principals_count(t), PRINCIPALS_MAX);
    for (unsigned i = 0; i < PRINCIPALS_MAX; i += 511) {
        uint8_t hash[PRINCIPAL_DIGEST] = { (uint8_t)i, (uint8_t)(i >> 8) };

        snprintf(p.name, sizeof p.name, "p%u", i);
        assert_string_equal(principals_by_token(t, hash, NOW)->name, p.name);
    }
    principals_free(t);
}

static void one_wrong_bit_in_any_place_is_nobody(void **state)
{
    (void)state;
    struct principals *t = principals_new();
    uint8_t digest[PRINCIPAL_DIGEST];

    assert_int_equal(principals_add_token(t, "default", view_cstr("the token"), NULL), 0);
    assert_int_equal(principals_digest(view_cstr("the token"), digest), 1);
    assert_string_equal(principals_by_token(t, digest, NOW)->name, "default");
    for (unsigned bit = 0; bit < 8 * PRINCIPAL_DIGEST; bit++) {
        digest[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_null(principals_by_token(t, digest, NOW));
        digest[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    principals_free(t);
}

static void two_tokens_of_one_name_are_the_same_principal(void **state)
{
    (void)state;
    struct err e = { 0 };
    struct principals *t =
        parse("{\"name\": \"a\", \"sha256\": [\"" HASH_A "\", \"" HASH_B "\"]}", &e);

    assert_non_null(t);
    assert_ptr_equal(by(t, 0xaa, NOW), by(t, 0xbb, NOW));
    principals_free(t);
}

static void a_token_ends_with_its_time(void **state)
{
    (void)state;
    struct err e = { 0 };
    struct principals *t = parse(
        "{\"name\": \"a\", \"sha256\": \"" HASH_A "\", \"expires\": \"2027-01-15T08:00:00Z\"}\n"
        "{\"name\": \"b\", \"sha256\": \"" HASH_B "\", \"expires\": \"2027-01-16\"}\n"
        "{\"name\": \"c\", \"sha256\": []}\n",
        &e);

    assert_non_null(t);
    assert_non_null(by(t, 0xaa, NOW - 1));
    assert_null(by(t, 0xaa, NOW));
    assert_null(principals_by_name(t, "a", NOW));
    assert_non_null(by(t, 0xbb, NOW));
    assert_true(principals_next_expiry(t, NOW - 1) == NOW);
    assert_true(principals_next_expiry(t, NOW) == NOW + 16 * 3600);
    assert_true(principals_next_expiry(t, NOW + 16 * 3600) == 0);
    principals_free(t);
}

static void an_observer_sees_whom_it_observes_and_a_proxy_nobody(void **state)
{
    (void)state;
    const struct principal full = { .name = "a" },
                           one = { .name = "o", .role = ROLE_OBSERVER, .observes = "a" },
                           all = { .name = "o", .role = ROLE_OBSERVER, .observes = "*" },
                           proxy = { .name = "a", .role = ROLE_PROXY };

    assert_int_equal(principal_sees(&full, "a"), 1);
    assert_int_equal(principal_sees(&full, "b"), 0);
    assert_int_equal(principal_sees(&one, "a"), 1);
    assert_int_equal(principal_sees(&one, "o"), 0);
    assert_int_equal(principal_sees(&all, "b"), 1);
    assert_int_equal(principal_sees(&proxy, "a"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_becomes_a_principal),
        cmocka_unit_test(each_mistake_is_told_with_line_and_field_and_no_value),
        cmocka_unit_test(data_directories_are_named_as_the_server_has_them),
        cmocka_unit_test(profiles_are_named_as_the_server_has_them),
        cmocka_unit_test(each_of_the_most_profiles_is_not_all),
        cmocka_unit_test(a_cut_line_is_never_half_a_principal),
        cmocka_unit_test(a_nul_and_a_missing_end_of_line_are_seen),
        cmocka_unit_test(too_many_principals_are_refused),
        cmocka_unit_test(one_wrong_bit_in_any_place_is_nobody),
        cmocka_unit_test(two_tokens_of_one_name_are_the_same_principal),
        cmocka_unit_test(a_token_ends_with_its_time),
        cmocka_unit_test(an_observer_sees_whom_it_observes_and_a_proxy_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
