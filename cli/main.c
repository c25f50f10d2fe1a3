/* holdcell - the command line: a table of subcommands. */
#include <stdio.h>
#include <string.h>

#include "command.h"

static int command_help(int argc, char **argv);

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help; /* NULL: for our own programs, not shown */
} commands[] = {
    { "serve", command_serve, "serve kernels over HTTP and WebSocket" },
    { "stop", command_stop, "end kernels that `serve --on-exit keep` left without a server" },
    { "doctor", command_doctor, "try the walls of sandboxes on this host" },
    { "token", command_token, "make a token for a principal; check a file of principals" },
    { "profiles", command_profiles, "check a file of profiles, and show what comes out of it" },
    { "audit", command_audit, "verify the chain of an audit file" },
    { "version", command_version, "tell commit, libraries and build" },
    { "help", command_help, "show this list; of a command: its help" },
    { "gateway", command_gateway, NULL },
};

enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

static void print_commands(FILE *to)
{
    fprintf(to, "usage: holdcell COMMAND [OPTION...]\n\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (commands[i].help != NULL)
            fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].help);
    }
}

static int asks_for_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static const struct command *find(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

static int unknown(const char *name)
{
    fprintf(stderr, "holdcell: unknown command '%s'\n", name);
    print_commands(stderr);
    return EXIT_USAGE;
}

/* `help COMMAND` is `COMMAND --help`; what is not shown has none. */
static int command_help(int argc, char **argv)
{
    const char *name = argc > 1 && !asks_for_help(argv[1]) ? argv[1] : "help";
    const struct command *c = find(name);

    if (c == NULL)
        return unknown(name);
    if (c->run != command_help && c->help != NULL)
        return c->run(2, (char *[]){ argv[1], (char[]){ "--help" }, NULL });
    print_commands(stdout);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_commands(stderr);
        return EXIT_USAGE;
    }
    const char *name = argv[1];
    if (asks_for_help(name))
        name = "help";
    if (strcmp(name, "--version") == 0)
        name = "version";
    const struct command *c = find(name);
    return c != NULL ? c->run(argc - 1, argv + 1) : unknown(name);
}
