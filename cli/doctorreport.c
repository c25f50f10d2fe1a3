#include "doctorreport.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "buf.h"
#include "err.h"
#include "jsonwrite.h"

enum { STATE_WIDTH = 9, NAME_WIDTH = 27, LEAST_WIDTH = 60 };

int doctorreport_line(struct doctorreport *d, const char *line, struct err *e)
{
    char name[64], state[16];
    struct finding f = { .known = 1 };
    enum hostwall wall;
    int used = 0;

    if (sscanf(line, "%63s %15s %" SCNu32 "%n", name, state, &f.us, &used) != 3 ||
        line[used] != ' ' || hostwall_of(name, &wall) < 0 || hostwall_state_of(state, &f.state) < 0)
        return err_set(e, EPROTO, "holdcell-launcher said '%.100s'", line);
    snprintf(f.detail, sizeof f.detail, "%s", line + used + 1);
    d->findings[wall] = f;
    return 0;
}

void doctorreport_finish(struct doctorreport *d)
{
    for (unsigned i = 0; i < HOSTWALL_COUNT; i++)
        if (!d->findings[i].known)
            d->findings[i] = (struct finding){ .state = HOSTWALL_MISSING,
                                               .detail = "holdcell-launcher ended before it "
                                                         "could be tried" };
}

static hostwall_set missing(const struct doctorreport *d)
{
    hostwall_set set = 0;

    for (unsigned i = 0; i < HOSTWALL_COUNT; i++)
        if (d->findings[i].state == HOSTWALL_MISSING)
            set |= HOSTWALL_BIT(i);
    return set;
}

hostwall_set doctorreport_refused(const struct doctorreport *d)
{
    return hostwall_refused(&d->policy, missing(d));
}

/* Demanded and missing, but the operator does without. */
static hostwall_set accepted(const struct doctorreport *d)
{
    return missing(d) & d->policy.accepted;
}

/* ---- the table ---- */

static void line_break(unsigned indent, FILE *to)
{
    fprintf(to, "\n%*s", (int)indent, "");
}

/* Words with an indent of their own; column: where the cursor is. */
static void print_wrapped(const char *text, unsigned column, unsigned indent, unsigned width,
                          FILE *to)
{
    while (*text != '\0') {
        size_t n = strcspn(text, " ");

        if (column > indent && column + 1 + n > width) {
            line_break(indent, to);
            column = indent;
        } else if (column > indent) {
            fputc(' ', to);
            column++;
        }
        fwrite(text, 1, n, to);
        column += (unsigned)n;
        text += n + strspn(text + n, " ");
    }
}

static void print_note(const char *label, const char *text, unsigned width, FILE *to)
{
    enum { LABEL = 7 };
    const unsigned indent = 2 + STATE_WIDTH + NAME_WIDTH + LABEL;

    fprintf(to, "%*s%-*s", (int)(indent - LABEL), "", LABEL, label);
    print_wrapped(text, indent, indent, width, to);
    fputc('\n', to);
}

static const char *state_for_people(const struct doctorreport *d, unsigned i)
{
    const struct finding *f = &d->findings[i];

    if (f->state != HOSTWALL_MISSING)
        return hostwall_state_name(f->state);
    if (!hostwall_demanded(&d->policy, (enum hostwall)i))
        return "missing";
    return (d->policy.accepted & HOSTWALL_BIT(i)) != 0 ? "accepted" : "MISSING";
}

static void print_wall(const struct doctorreport *d, unsigned i, unsigned width, FILE *to)
{
    const struct hostwall_info *w = hostwall_info((enum hostwall)i);
    const struct finding *f = &d->findings[i];
    const unsigned indent = 2 + STATE_WIDTH + NAME_WIDTH;

    fprintf(to, "  %-*s%-*s", STATE_WIDTH, state_for_people(d, i), NAME_WIDTH, w->name);
    print_wrapped(w->purpose, indent, indent, width, to);
    fputc('\n', to);
    if (f->detail[0] != '\0')
        print_note("found", f->detail, width, to);
    if (f->state == HOSTWALL_PRESENT || f->state == HOSTWALL_ABSENT)
        return;
    if (f->state == HOSTWALL_MISSING || w->group == HOSTWALLS_OF_HOST || f->detail[0] == '\0')
        print_note("means", w->without, width, to);
    print_note("help", w->remedy, width, to);
}

static void print_verdict(const struct doctorreport *d, FILE *to)
{
    const hostwall_set refused = doctorreport_refused(d);
    hostwall_set acceptable = 0;
    char names[400];

    if (refused == 0)
        fprintf(to, "Level %s: what it demands is there", isolation_name(d->policy.level));
    else {
        hostwall_set_print(refused, names, sizeof names);
        fprintf(to, "Level %s%s demands what is missing: %s.\n`holdcell serve` refuses to start",
                isolation_name(d->policy.level),
                (refused & d->policy.wanted) != 0 ? " with these options" : "", names);
    }
    if (accepted(d) != 0) {
        hostwall_set_print(accepted(d), names, sizeof names);
        fprintf(to, "%s accepted as missing: %s", refused == 0 ? ", but for what is" : ";", names);
    }
    fprintf(to, ".\n");
    for (unsigned i = 0; i < HOSTWALL_COUNT; i++)
        if ((refused & HOSTWALL_BIT(i)) != 0 && hostwall_info((enum hostwall)i)->acceptable)
            acceptable |= HOSTWALL_BIT(i);
    for (unsigned i = 0; i < HOSTWALL_COUNT; i++)
        if ((acceptable & HOSTWALL_BIT(i)) != 0)
            fprintf(to, "--accept-missing %s would serve without it.\n",
                    hostwall_info((enum hostwall)i)->name);
}

void doctorreport_table(const struct doctorreport *d, unsigned width, FILE *to)
{
    if (width < LEAST_WIDTH)
        width = LEAST_WIDTH;
    for (unsigned group = 0; group < HOSTWALL_GROUPS; group++) {
        fprintf(to, "%s%s\n", group > 0 ? "\n" : "",
                hostwall_group_title((enum hostwall_group)group));
        for (unsigned i = 0; i < HOSTWALL_COUNT; i++)
            if (hostwall_info((enum hostwall)i)->group == group)
                print_wall(d, i, width, to);
    }
    fputc('\n', to);
    print_verdict(d, to);
}

/* ---- JSON ---- */

static void write_names(struct jsonwrite *w, const char *key, hostwall_set set)
{
    jsonwrite_key(w, key);
    jsonwrite_array(w);
    for (unsigned i = 0; i < HOSTWALL_COUNT; i++)
        if ((set & HOSTWALL_BIT(i)) != 0)
            jsonwrite_str(w, hostwall_info((enum hostwall)i)->name);
    jsonwrite_end(w);
}

static void write_text(struct jsonwrite *w, const char *key, const char *text)
{
    jsonwrite_key(w, key);
    jsonwrite_str(w, text);
}

static void write_wall(const struct doctorreport *d, unsigned i, struct jsonwrite *w)
{
    const struct hostwall_info *info = hostwall_info((enum hostwall)i);
    const struct finding *f = &d->findings[i];

    jsonwrite_object(w);
    write_text(w, "name", info->name);
    write_text(w, "group", hostwall_group_name(info->group));
    write_text(w, "state", hostwall_state_name(f->state));
    jsonwrite_key(w, "demanded");
    jsonwrite_bool(w, hostwall_demanded(&d->policy, (enum hostwall)i));
    jsonwrite_key(w, "acceptable");
    jsonwrite_bool(w, info->acceptable);
    write_text(w, "detail", f->detail);
    write_text(w, "purpose", info->purpose);
    write_text(w, "without", info->without);
    write_text(w, "remedy", info->remedy);
    jsonwrite_key(w, "duration_us");
    jsonwrite_uint(w, f->us);
    jsonwrite_end(w);
}

int doctorreport_json(const struct doctorreport *d, struct buf *to, struct err *e)
{
    const hostwall_set refused = doctorreport_refused(d);
    struct jsonwrite w = jsonwrite_to(to);

    jsonwrite_object(&w);
    jsonwrite_key(&w, "ok");
    jsonwrite_bool(&w, refused == 0);
    write_text(&w, "level", isolation_name(d->policy.level));
    write_names(&w, "refused", refused);
    write_names(&w, "accepted", accepted(d));
    jsonwrite_key(&w, "walls");
    jsonwrite_array(&w);
    for (unsigned i = 0; i < HOSTWALL_COUNT; i++)
        write_wall(d, i, &w);
    jsonwrite_end(&w);
    jsonwrite_end(&w);
    return jsonwrite_finish(&w, e);
}
