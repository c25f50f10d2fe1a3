/* `holdcell token`: makes a token for a file of --principals, and checks such a file. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "buf.h"
#include "command.h"
#include "err.h"
#include "hex.h"
#include "livefiles.h"
#include "options.h"
#include "principals.h"
#include "settings.h"
#include "subcommand.h"
#include "token.h"

struct token_options {
    int help;
    const char *name, *role, *observes;
};

#define TEXT(name, metavar, member, help)                                                \
    {                                                                                    \
        name, metavar, OPTION_STRING, offsetof(struct token_options, member), 0, 0, help \
    }
static const struct option_spec specs[] = {
    { "help", NULL, OPTION_FLAG, offsetof(struct token_options, help), 0, 0, "show this list" },
    TEXT("name", "NAME", name, "new: whose token it is"),
    TEXT("role", "ROLE", role, "new: full, observer or proxy (full)"),
    TEXT("observes", "NAME", observes, "new: whose kernels an observer reads; * for all"),
};
enum { SPEC_COUNT = sizeof specs / sizeof specs[0] };

static int usage(FILE *to)
{
    fprintf(to,
            "usage: holdcell token new --name NAME [--role ROLE] [--observes NAME]\n"
            "       holdcell token check FILE\n\n"
            "new makes a random token. It prints the line for the file of holdcell serve\n"
            "--principals on stdout, and the token, once, on stderr:\n"
            "    holdcell token new --name alice >> /etc/holdcell/principals\n"
            "The line holds the token's SHA-256, not the token. check reads such a file as the\n"
            "server does.\n\n");
    options_help(specs, SPEC_COUNT, to);
    return to == stdout ? 0 : EXIT_USAGE;
}

static int failed(const struct err *e)
{
    fprintf(stderr, "holdcell token: %s\n", e->msg);
    return e->code == EINVAL || e->code == EEXIST ? EXIT_USAGE : 1;
}

/* It is nobody's reserved name: where it is a line, its token lies there as a hash alone. */
static void note_default(const struct principals *t)
{
    if (principals_has(t, PRINCIPAL_DEFAULT))
        fprintf(
            stderr,
            "note: a server whose file has '%s' takes no --token, --token-file or HOLDCELL_TOKEN\n",
            PRINCIPAL_DEFAULT);
}

/* The names are checked by reading the line as the server will. */
static int write_line(const struct token_options *o, const char *token, struct buf *line,
                      struct err *e)
{
    struct principals *t = principals_new();
    uint8_t digest[PRINCIPAL_DIGEST];
    char hex[2 * PRINCIPAL_DIGEST + 1];
    const char *role = o->role != NULL ? o->role : "full";
    int rc = principals_digest(view_cstr(token), digest)
                 ? 0
                 : err_set(e, EIO, "libcrypto has no SHA-256");

    hex_encode(digest, sizeof digest, hex);
    if (rc == 0 && strpbrk(o->name, "\"\\") != NULL)
        rc = err_set(e, EINVAL, "option --name: a name has no quotes and backslashes");
    if (rc == 0 && (strpbrk(role, "\"\\") != NULL ||
                    (o->observes != NULL && strpbrk(o->observes, "\"\\") != NULL)))
        rc = err_set(e, EINVAL, "options --role and --observes have no quotes and backslashes");
    if (rc == 0 &&
        buf_addf(line, "{\"name\": \"%s\", \"role\": \"%s\", %s%s%s\"sha256\": [\"%s\"]}", o->name,
                 role, o->observes != NULL ? "\"observes\": \"" : "",
                 o->observes != NULL ? o->observes : "", o->observes != NULL ? "\", " : "",
                 hex) < 0)
        rc = err_set(e, EINVAL, "the names are too long");
    if (rc == 0)
        rc = principals_parse(t, buf_view(line), NULL, e);
    if (rc == 0)
        note_default(t);
    principals_free(t);
    return rc;
}

static int new_token(const struct token_options *o)
{
    autofree char *token = NULL;
    autobuf struct buf line;
    struct err e = { 0 };

    buf_init(&line, 4096);
    int rc = o->name == NULL ? err_set(&e, EINVAL, "option --name is needed") : 0;
    if (rc == 0)
        rc = token_random(&token, &e);
    if (rc == 0)
        rc = write_line(o, token, &line, &e);
    if (rc < 0)
        return failed(&e);
    /* The line first: a token whose line was lost is of no use. */
    printf("%.*s\n", (int)buf_len(&line), (const char *)buf_view(&line).p);
    if (fflush(stdout) != 0) {
        err_sys(&e, errno, "write the line");
        return failed(&e);
    }
    fprintf(stderr, "token (shown only now): %s\n", token);
    explicit_bzero(token, strlen(token));
    return 0;
}

static int check_file(const char *path)
{
    struct livefiles files = { 0 };
    struct principals *t = principals_new();
    autobuf struct buf text;
    struct err e = { 0 };

    buf_init(&text, SETTINGS_MAX);
    livefiles_add(&files, "principals", NULL, path, LIVEFILE_SECRET);
    int rc = livefiles_read(&files, &text, &e);
    if (rc == 0) {
        rc = principals_parse(t, view_cstr(settings_text(buf_view(&text), "principals", "")), NULL,
                              &e);
        if (rc < 0)
            err_wrap(&e, "%.120s", path);
    }
    if (rc == 0)
        printf("%s: %zu principal%s\n", path, principals_count(t),
               principals_count(t) == 1 ? "" : "s");
    if (rc == 0)
        note_default(t);
    livefiles_free(&files);
    principals_free(t);
    return rc < 0 ? failed(&e) : 0;
}

/* argv begins with the word `check`. */
static int check_command(int argc, char **argv)
{
    autofree const char **files = xcalloc((size_t)argc, sizeof *files);
    struct token_options o = { 0 };
    struct err e = { 0 };
    int count = options_parse(specs, SPEC_COUNT, argc, argv, &o, files, &e);

    if (count >= 0 && o.help)
        return usage(stdout);
    if (count >= 0 && (o.name != NULL || o.role != NULL || o.observes != NULL))
        count = err_set(&e, EINVAL, "check: takes no --name, --role and --observes");
    if (count == 0)
        count = err_set(&e, EINVAL, "check: FILE is missing");
    if (count > 1)
        count = err_set(&e, EINVAL, "check: unexpected argument '%.80s'", files[1]);
    return count < 0 ? failed(&e) : check_file(files[0]);
}

static int new_command(int argc, char **argv)
{
    struct token_options o = { 0 };
    struct err e = { 0 };

    if (options_parse(specs, SPEC_COUNT, argc, argv, &o, NULL, &e) < 0)
        return failed(&e);
    return o.help ? usage(stdout) : new_token(&o);
}

int command_token(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : NULL;

    if (what != NULL && strcmp(what, "check") == 0)
        return check_command(argc - 1, argv + 1);
    if (what != NULL && strcmp(what, "new") == 0)
        return new_command(argc - 1, argv + 1);
    return subcommand_wrong("token", what, "new or check", usage);
}
