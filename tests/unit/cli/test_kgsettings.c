/* Names of Jupyter Kernel Gateway: what each value of each kind becomes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "err.h"
#include "kgsettings.h"
#include "kgtable.h"
#include "options.h"

/* Every option that a row of the table may set, as text or truth, so that all of it
 * can be read without the server's own table. */
enum { OPTIONS_MAX = 64 };

struct fixture {
    struct option_spec specs[OPTIONS_MAX];
    const char *text[OPTIONS_MAX];
    int truth[OPTIONS_MAX];
    struct option_mark marks[OPTIONS_MAX];
    size_t count;
    struct option_reader r;
    struct kgsettings k;
    struct err e;
};

static int is_truth(const char *option)
{
    return strcmp(option, "no-list-kernels") == 0 || strcmp(option, "cull-busy") == 0 ||
           strcmp(option, "cull-connected") == 0;
}

static size_t index_of(const struct fixture *f, const char *option)
{
    size_t i = 0;

    while (i < f->count && strcmp(f->specs[i].name, option) != 0)
        i++;
    return i;
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);

    for (size_t i = 0; i < kg_setting_count; i++) {
        const char *option = kg_settings[i].option;
        size_t at = f->count;

        unsetenv(kg_settings[i].env != NULL ? kg_settings[i].env : "KG_NONE");
        if (option == NULL || index_of(f, option) < f->count)
            continue;
        assert_true(at < OPTIONS_MAX);
        f->specs[at] = (struct option_spec){ .name = option };
        f->specs[at].kind = is_truth(option) ? OPTION_FLAG : OPTION_STRING;
        f->specs[at].offset = (size_t)(is_truth(option) ? (char *)&f->truth[at] - (char *)f
                                                        : (char *)&f->text[at] - (char *)f);
        f->truth[at] = -1;
        f->count++;
    }
    f->r = (struct option_reader){ f->specs, f->count, f, f->marks, kgsettings_flag, &f->k };
    f->k.reader = &f->r;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < kg_setting_count; i++) {
        if (kg_settings[i].env != NULL)
            unsetenv(kg_settings[i].env);
    }
    kgsettings_free(&f->k);
    free(f);
    return 0;
}

static const char *value_of(const struct fixture *f, const char *option)
{
    size_t i = index_of(f, option);

    assert_true(i < f->count);
    if (is_truth(option))
        return f->truth[i] < 0 ? "-" : f->truth[i] ? "true" : "false";
    return f->text[i] != NULL ? f->text[i] : "-";
}

static int read_flags(struct fixture *f, const char *a, const char *b)
{
    char *argv[] = { (char *)(uintptr_t) "serve", (char *)(uintptr_t)a, (char *)(uintptr_t)b };

    return options_read(&f->r, b != NULL ? 3 : 2, argv, &f->e);
}

static void variables_become_options(void **state)
{
    static const struct {
        const char *variable, *value, *option, *becomes;
    } rows[] = {
        { "KG_IP", "0.0.0.0", "ip", "0.0.0.0" },
        { "KG_IP", "*", "ip", "0.0.0.0" },
        { "KG_IP", "::1", "ip", "[::1]" },
        { "KG_IP", "[::1]", "ip", "[::1]" },
        { "KG_PORT", "9000", "port", "9000" },
        { "KG_BASE_URL", "a/b", "base-url", "/a/b" },
        { "KG_BASE_URL", "/a", "base-url", "/a" },
        { "KG_MAX_KERNELS", "3", "max-kernels", "3" },
        { "KG_PRESPAWN_COUNT", "0", "prespawn", "0" },
        { "KG_SEED_URI", "/a/b.ipynb", "seed-notebook", "/a/b.ipynb" },
        { "KG_SEED_URI", "file:///a/b.ipynb", "seed-notebook", "/a/b.ipynb" },
        { "KG_SEED_URI", "file://localhost/b", "seed-notebook", "/b" },
        { "KG_SEED_URI", "file:b", "seed-notebook", "b" },
        { "KG_ENV_WHITELIST", "A", "env-allow", "A" },
        { "KG_ENV_WHITELIST", ",A,, B,", "env-allow", "A,B" },
        { "KG_ENV_WHITELIST", ",", "env-allow", "-" },
        { "KG_ENV_PROCESS_WHITELIST", "['A', \"B\"]", "env-inherit", "A,B" },
        { "KG_LIST_KERNELS", "True", "no-list-kernels", "false" },
        { "KG_LIST_KERNELS", "true", "no-list-kernels", "true" }, /* only True is true there */
        { "KG_LIST_KERNELS", "False", "no-list-kernels", "true" },
        { "KG_LIST_KERNELS", "", "no-list-kernels", "-" },
        { "KG_API", "kernel_gateway.jupyter_websocket", "port", "-" },
        { "KG_SSL_VERSION", "5", "port", "-" },
        { "KG_TRUST_XHEADERS", "False", "port", "-" },
        { "KG_MAX_AGE", "600", "cors-max-age", "600" },
        { "KG_ALLOW_ORIGIN", "*", "allow-origin", "*" },
        { "KG_CERTFILE", "c.pem", "tls-cert", "c.pem" },
        { "KG_AUTH_TOKEN", "secret", "token", "-" }, /* taken and wiped elsewhere */
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fixture *f;

        set_up(state);
        f = *state;
        setenv(rows[i].variable, rows[i].value, 1);
        if (kgsettings_environment(&f->k, &f->e) < 0)
            fail_msg("%s=%s: %s", rows[i].variable, rows[i].value, f->e.msg);
        if (strcmp(value_of(f, rows[i].option), rows[i].becomes) != 0)
            fail_msg("%s=%s: --%s is %s", rows[i].variable, rows[i].value, rows[i].option,
                     value_of(f, rows[i].option));
        tear_down(state);
    }
}

static void flags_become_options(void **state)
{
    static const struct {
        const char *a, *b, *option, *becomes;
    } rows[] = {
        { "--KernelGatewayApp.port=9", NULL, "port", "9" },
        { "--KernelGatewayApp.port", "9", "port", "9" },
        { "-KernelGatewayApp.port=9", NULL, "port", "9" },
        { "--port_retries=4", NULL, "port-retries", "4" },
        { "--seed_uri", "a.ipynb", "seed-notebook", "a.ipynb" },
        { "--client-ca=ca", NULL, "tls-client-ca", "ca" },
        { "--KernelGatewayApp.max_kernels=None", NULL, "max-kernels", "-" },
        { "--KernelGatewayApp.env_process_whitelist=A",
          "--KernelGatewayApp.env_process_whitelist=B", "env-inherit", "A,B" },
        { "--JupyterWebsocketPersonality.env_whitelist=['A','B']", NULL, "env-allow", "A,B" },
        { "--JupyterWebsocketPersonality.list_kernels=True", NULL, "no-list-kernels", "false" },
        { "--JupyterWebsocketPersonality.list_kernels=0", NULL, "no-list-kernels", "true" },
        { "--MappingKernelManager.cull_idle_timeout=300", NULL, "cull-idle-timeout", "300" },
        { "--SeedingMappingKernelManager.cull_busy=True", NULL, "cull-busy", "true" },
        { "--AsyncMappingKernelManager.cull_connected=False", NULL, "cull-connected", "false" },
        { "--KernelSpecManager.allowed_kernelspecs={'a'}", NULL, "allowed-kernels", "a" },
        { "--KernelGatewayApp.log_level=10", NULL, "log-level", "debug" },
        { "--KernelGatewayApp.log_level=WARNING", NULL, "log-level", "warn" },
        { "--debug", NULL, "log-level", "debug" },
        { "-y", NULL, "port", "-" },
        { "--KernelGatewayApp.auth_token=t", NULL, "token", "t" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fixture *f;

        set_up(state);
        f = *state;
        if (read_flags(f, rows[i].a, rows[i].b) < 0)
            fail_msg("%s: %s", rows[i].a, f->e.msg);
        if (strcmp(value_of(f, rows[i].option), rows[i].becomes) != 0)
            fail_msg("%s: --%s is %s", rows[i].a, rows[i].option, value_of(f, rows[i].option));
        tear_down(state);
    }
}

static void what_has_no_meaning_here_is_refused_by_name(void **state)
{
    static const struct {
        const char *variable, *flag, *value, *says;
    } rows[] = {
        { "KG_API", NULL, "kernel_gateway.notebook_http",
          "KG_API: 'kernel_gateway.notebook_http' is not" },
        { "KG_SEED_URI", NULL, "HTTPS://h/n.ipynb", "is a URL" },
        { "KG_MAX_KERNELS", NULL, "0", "KG_MAX_KERNELS: 0 would let no kernel start" },
        { "KG_STATIC_PATH", NULL, "/x", "KG_STATIC_PATH is not supported: " },
        { "KG_ALLOW_NOTEBOOK_DOWNLOAD", NULL, "True",
          "KG_ALLOW_NOTEBOOK_DOWNLOAD: 'True' is not supported" },
        { "KG_TRUST_XHEADERS", NULL, "true", "--trusted-proxy names the proxies" },
        { "KG_SSL_VERSION", NULL, "3", "TLS is 1.2 or later" },
        { NULL, "--KernelGatewayApp.kernel_manager_class=x", NULL, "no Python class" },
        { NULL, "--KernelGatewayApp.cookie_secret=x", NULL, "no cookies" },
        { NULL, "--generate-config", NULL, "option --generate-config is not supported: " },
        { NULL, "--api=notebook-http", NULL, "option --api: 'notebook-http' is not supported" },
        { NULL, "--KernelGatewayApp.prot=1", NULL, "did you mean --KernelGatewayApp.port?" },
        { NULL, "--Other.thing=1", NULL, "unknown option --Other.thing: see" },
        { NULL, "--nosuch", NULL, "unknown option --nosuch" },
        { NULL, "--KernelGatewayApp.ip", NULL, "option --KernelGatewayApp.ip needs a value" },
        { NULL, "--debug=1", NULL, "option --debug takes no value" },
        { NULL, "--JupyterWebsocketPersonality.list_kernels=perhaps", NULL,
          "neither True nor False" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fixture *f;
        int rc;

        set_up(state);
        f = *state;
        if (rows[i].variable != NULL) {
            setenv(rows[i].variable, rows[i].value, 1);
            rc = kgsettings_environment(&f->k, &f->e);
        } else {
            rc = read_flags(f, rows[i].flag, NULL);
        }
        if (rc != -EINVAL || strstr(f->e.msg, rows[i].says) == NULL)
            fail_msg("row %zu: %d, %s", i, rc, f->e.msg);
        tear_down(state);
    }
}

static void a_flag_comes_before_a_variable(void **state)
{
    struct fixture *f;

    set_up(state);
    f = *state;
    setenv("KG_PORT", "1", 1);
    setenv("KG_ENV_WHITELIST", "A", 1);
    assert_int_equal(read_flags(f, "--KernelGatewayApp.port=2", NULL), 0);
    assert_int_equal(kgsettings_environment(&f->k, &f->e), 0);
    assert_string_equal(value_of(f, "port"), "2");
    assert_string_equal(value_of(f, "env-allow"), "A");
    assert_string_equal(options_mark(&f->r, "port")->label, "option --KernelGatewayApp.port");
    tear_down(state);
}

static void unknown_variables_are_told_from_known_ones(void **state)
{
    const char *nearest;

    (void)state;
    assert_int_equal(kgsettings_knows("KG_PORT", &nearest), 1);
    assert_int_equal(kgsettings_knows("KG_AUTH_TOKEN", &nearest), 1);
    assert_int_equal(kgsettings_knows("KG_PROT", &nearest), 0);
    assert_string_equal(nearest, "KG_PORT");
    assert_int_equal(kgsettings_knows("KG_SERVICE_HOST_OF_SOMETHING", &nearest), 0);
    assert_null(nearest);
}

static void every_row_of_the_table_says_what_it_means(void **state)
{
    (void)state;
    for (size_t i = 0; i < kg_setting_count; i++) {
        const struct kg_setting *s = &kg_settings[i];

        assert_true(s->env != NULL || s->trait != NULL || s->alias != NULL);
        assert_true((s->option != NULL) == (s->kind < KG_ONLY || s->kind == KG_SWITCH_LEVEL));
        assert_true(s->option != NULL || s->why != NULL);
        assert_true((s->kind == KG_ONLY) == (s->values != NULL));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_become_options),
        cmocka_unit_test(flags_become_options),
        cmocka_unit_test(what_has_no_meaning_here_is_refused_by_name),
        cmocka_unit_test(a_flag_comes_before_a_variable),
        cmocka_unit_test(unknown_variables_are_told_from_known_ones),
        cmocka_unit_test(every_row_of_the_table_says_what_it_means),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
