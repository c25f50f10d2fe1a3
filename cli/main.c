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
    { "serve", command_serve, "serve kernels over HTTP and WebSocket; `holdcell serve --help`" },
    { "version", command_version, "tell commit, libraries and build" },
    { "help", command_help, "show this list" },
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

static int command_help(int argc, char **argv)
{
    (void)argc;
    (void)argv;
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
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    if (strcmp(name, "--version") == 0)
        name = "version";
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i].name, name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    }
    fprintf(stderr, "holdcell: unknown command '%s'\n", name);
    print_commands(stderr);
    return EXIT_USAGE;
}
