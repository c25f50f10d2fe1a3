/* `holdcell audit verify FILE...`: follows the chain of an audit file, or of several in the
 * order they were written. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auditline.h"
#include "command.h"
#include "err.h"
#include "subcommand.h"

static int usage(FILE *to)
{
    fprintf(to, "usage: holdcell audit verify FILE...\n\n"
                "Tells whether each line follows the one before it. Rotated files are named in the "
                "order\nthey were written. Status: 0 the chain is whole, 1 it is not.\n");
    return to == stdout ? 0 : EXIT_USAGE;
}

static int check_file(struct auditcheck *c, const char *path, struct err *e)
{
    FILE *f = fopen(path, "re");
    autofree char *line = NULL;
    size_t size = 0, number = 0;
    ssize_t n;
    int rc = 0;

    if (f == NULL)
        return err_sys(e, errno, "open '%.120s'", path);
    while (rc == 0 && (n = getline(&line, &size, f)) > 0) {
        struct view v = { (const uint8_t *)line, (size_t)n };

        number++;
        if (v.p[v.n - 1] == '\n')
            v.n--;
        if (v.n > 0 || number > 1)
            rc = auditcheck_line(c, v, e);
    }
    if (rc == 0 && ferror(f))
        rc = err_sys(e, errno, "read '%.120s'", path);
    else if (rc < 0)
        err_wrap(e, "%.120s", path);
    fclose(f);
    auditcheck_next_file(c);
    return rc;
}

static int verify(int count, char **paths)
{
    struct auditcheck c = { 0 };
    struct err e = { 0 };

    for (int i = 0; i < count; i++) {
        if (check_file(&c, paths[i], &e) < 0) {
            fprintf(stderr, "holdcell audit: %s\n", e.msg);
            return 1;
        }
    }
    if (c.lines == 0) {
        printf("no lines\n");
        return 0;
    }
    printf("the chain of %" PRIu64 " lines is whole\n", c.lines);
    if (strcmp(c.first, AUDITLINE_FIRST) != 0)
        printf("it follows a line with the digest %s\n", c.first);
    if (c.unfinished > 0)
        printf("%" PRIu64 " of them were cut off while they were written\n", c.unfinished);
    printf("the last record is number %" PRIu64 ", digest %s\n", c.next_seq - 1, c.whole);
    return 0;
}

int command_audit(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "verify") != 0)
        return subcommand_wrong("audit", argc > 1 ? argv[1] : NULL, "verify", usage);
    if (argc > 2 && (strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-h") == 0))
        return usage(stdout);
    if (argc < 3) {
        fprintf(stderr, "holdcell audit: verify: FILE is missing\n");
        return EXIT_USAGE;
    }
    return verify(argc - 2, argv + 2);
}
