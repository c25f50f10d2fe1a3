/* `holdcell profiles`: reads a file of --profiles as the server does, and shows each profile resolved. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "buf.h"
#include "command.h"
#include "datalist.h"
#include "err.h"
#include "limit.h"
#include "livefiles.h"
#include "memoryfiles.h"
#include "profilefile.h"
#include "serve_options.h"
#include "settings.h"
#include "subcommand.h"

static int usage(FILE *to)
{
    fprintf(
        to,
        "usage: holdcell profiles check FILE [OPTION...]\n\n"
        "Reads a file of holdcell serve --profiles as the server does, and shows what sessions of\n"
        "each profile get. The options are those of `holdcell serve` that count for what a "
        "profile\n"
        "leaves open: --memory-mb and the other limits, --home, --data. Without --data any name of "
        "a\n"
        "data directory will do. What the host has is tried by the server alone. Exit status: 0, "
        "or\n"
        "2 when something is wrong.\n");
    return to == stdout ? 0 : EXIT_USAGE;
}

static void show_lines(const struct profile *p)
{
    for (unsigned i = 0; i < LIMITS; i++) {
        const struct limit *l = &limit_rows[i];
        const double unit = (double)l->number_unit;

        printf("  %-16s %-10.10g at most %.10g\n", l->name, (double)limit_get(&p->limits, l) / unit,
               (double)limit_get(&p->maxima, l) / unit);
    }
    for (unsigned i = 0; i < TIME_LIMITS; i++) {
        if (p->times[i] != 0)
            printf("  %-16s %-10.10g at most %.10g\n", time_limits_named[i].name,
                   (double)p->times[i] / 1000, (double)p->most[i] / 1000);
        else
            printf("  %-16s none\n", time_limits_named[i].name);
    }
}

static void show(const struct profile *p)
{
    char walls[200];

    printf("%s\n", p->name);
    show_lines(p);
    if (p->idle_ms != PROFILE_UNSET)
        printf("  %-16s %.10g\n", "cull_idle_timeout", (double)p->idle_ms / 1000);
    printf("  %-16s %s\n", "home", profile_home_name(p->home));
    printf("  %-16s %s\n", "data", !p->data_some ? "all" : p->data[0] != '\0' ? p->data : "none");
    printf("  %-16s %s\n", "kernels", p->kernels_some ? p->kernels : "all");
    if (p->isolation != ISOLATION_PROCESS)
        printf("  %-16s %s\n", "isolation", isolation_name(p->isolation));
    hostwall_set_print(p->walls, walls, sizeof walls);
    if (p->walls != 0)
        printf("  %-16s %s\n", "walls", walls);
}

static void base_of(const struct serve_options *o, const char *data, struct profilefile_base *ret)
{
    *ret = (struct profilefile_base){
        .limits = LAUNCH_LIMITS_DEFAULT,
        .home_sized = o->limits[LIMIT_DISK] != SERVE_UNSET,
        .data = data,
        .data_unknown = data == NULL,
        .times = { .cell_ms = o->cell_timeout_ms != SERVE_UNSET ? o->cell_timeout_ms : 0,
                   .stdin_ms = o->stdin_timeout_ms != SERVE_UNSET ? o->stdin_timeout_ms : 0,
                   .life_ms = o->max_lifetime_ms != SERVE_UNSET ? o->max_lifetime_ms : 0 },
    };
    if (o->home != NULL)
        check(profile_home_of(o->home, &ret->home) == 0); /* it was checked with the options */
    if (ret->home == PROFILE_HOME_TMPFS)
        ret->limits.home_bytes = LAUNCH_HOME_MEMORY_DEFAULT;
    for (unsigned i = 0; i < LIMITS; i++)
        if (o->limits[i] != SERVE_UNSET)
            limit_set(&ret->limits, &limit_rows[i], o->limits[i] * limit_rows[i].unit);
}

static int check_file(const char *path, const struct serve_options *o, struct err *e)
{
    autofree char *names = NULL;
    autofree struct profiles *t = NULL;
    struct profilefile_base base;
    struct livefiles files = { 0 };
    autobuf struct buf text;

    buf_init(&text, SETTINGS_MAX);
    int rc = datalist_names(&o->data, &names, e);
    if (rc < 0)
        return rc;
    base_of(o, names, &base);
    livefiles_add(&files, "profiles", NULL, path, LIVEFILE_POLICY);
    rc = livefiles_read(&files, &text, e);
    livefiles_free(&files);
    if (rc < 0)
        return rc;
    rc = profilefile_read(view_cstr(settings_text(buf_view(&text), "profiles", "")), &base, &t, e);
    if (rc < 0)
        return err_wrap(e, "%.120s", path), rc;
    printf("%s: %u profile%s\n", path, t->count, t->count == 1 ? "" : "s");
    for (unsigned i = 0; i < t->count; i++)
        show(&t->at[i]);
    return 0;
}

int command_profiles(int argc, char **argv)
{
    struct serve_options o = { 0 };
    struct err e = { 0 };

    if (argc < 2 || strcmp(argv[1], "check") != 0)
        return subcommand_wrong("profiles", argc > 1 ? argv[1] : NULL, "check", usage);
    if (argc > 2 && (strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-h") == 0))
        return usage(stdout);
    if (argc < 3 || argv[2][0] == '-') {
        fprintf(stderr, "holdcell profiles: check: FILE is missing%s\n",
                argc > 2 ? "; it comes before the options" : "");
        return EXIT_USAGE;
    }
    int rc = serve_options_read(argc - 2, argv + 2, &o, &e);
    if (rc == 0 && (o.help || o.help_kernel_gateway)) {
        serve_options_free(&o);
        return usage(stdout);
    }
    if (rc == 0)
        rc = check_file(argv[2], &o, &e);
    serve_options_free(&o);
    if (rc < 0)
        fprintf(stderr, "holdcell profiles: %s\n", e.msg);
    return rc < 0 ? EXIT_USAGE : 0;
}
