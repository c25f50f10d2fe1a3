/* What kernels and their runs leave in the audit file. Code is told by its digest alone. */
#include <stdio.h>
#include <string.h>

#include "audit.h"
#include "err.h"
#include "jmsg.h"
#include "kernel_own.h"
#include "loop.h"
#include "seat.h"

static void begin(struct auditline *l, const struct kernel *k, const char *event,
                  const struct origin *o)
{
    audit_begin(l, event, k->session->principal.name, o);
    auditline_string(l, "session", k->session->id);
    auditline_string(l, "kernel", k->id);
}

void kernel_audit(struct kernel *k, const char *event, const char *key, const char *value)
{
    struct auditline l;

    if (!audit_on())
        return;
    begin(&l, k, event, origin_now());
    if (key != NULL)
        auditline_string(&l, key, value);
    audit_note(&l);
}

int kernel_audit_intent(struct kernel *k, const char *event, struct err *e)
{
    struct auditline l;

    if (!audit_on())
        return 0;
    begin(&l, k, event, origin_now());
    auditline_string(&l, "kernelspec", k->recipe.spec_name);
    auditline_string(&l, "profile", k->session->profile);
    return audit_intent(&l, e);
}

void kernel_audit_start(struct kernel *k, int ok, uint64_t took_us)
{
    struct auditline l;

    if (!audit_on())
        return;
    begin(&l, k, "kernel_start_end", k->origin);
    auditline_uint(&l, "generation", k->generation);
    auditline_string(&l, "outcome", ok ? "ok" : "failed");
    auditline_uint(&l, "duration_us", took_us);
    audit_note(&l);
}

/* ---- runs ---- */

/* The digest of the code as UTF-8; code that is no string has none. */
static void add_code(struct auditline *l, const struct jmsg *m)
{
    static const struct jsonscan_rules loose = { JSONSCAN_NAN | JSONSCAN_BAD_UTF8, 512 };
    static const char *const keys[] = { "code" };
    char digest[AUDITLINE_DIGEST] = "";
    struct jsonscan_value v;
    autobuf struct buf code = { 0 };

    buf_init(&code, 3 * m->content.n + 1);
    if (jsonscan_object(m->content, &loose, keys, 1, &v, NULL, NULL) == 0 &&
        jsonscan_string_decode(v, &code, NULL) == 0 &&
        auditline_digest(buf_view(&code), digest, NULL) < 0)
        digest[0] = '\0';
    auditline_string(l, "code_sha256", digest);
    auditline_uint(l, "code_bytes", buf_len(&code));
}

int kernel_audit_run(struct seat *s, const struct jmsg *m, struct err *e)
{
    struct kernel *k = s->kernel;
    struct auditline l;

    if (!audit_on())
        return 0;
    begin(&l, k, "run_start", s->origin);
    auditline_uint(&l, "generation", k->generation);
    auditline_uint(&l, "run", queries_next_number(k->queries));
    add_code(&l, m);
    return audit_intent(&l, e);
}

static void run_end_line(struct kernel *k, const struct origin *o, uint64_t run, const char *state,
                         const char *short_of, uint64_t took_us)
{
    struct auditline l;

    if (!audit_on())
        return;
    begin(&l, k, "run_end", o);
    auditline_uint(&l, "generation", k->generation);
    auditline_uint(&l, "run", run);
    auditline_string(&l, "state", state);
    if (short_of[0] != '\0')
        auditline_string(&l, "short_of", short_of);
    if (took_us != 0)
        auditline_uint(&l, "duration_us", took_us);
    audit_note(&l);
}

void kernel_audit_run_end(struct kernel *k, const struct query *q, uint64_t took_us)
{
    char short_of[KERNEL_SHORT_TEXT];

    run_end_line(k, q->origin, q->number, run_state_name(q->run.state),
                 kernel_short_text(q, short_of), took_us);
}

void kernel_audit_run_unsent(struct seat *s, const char *state)
{
    run_end_line(s->kernel, s->origin, queries_next_number(s->kernel->queries), state, "", 0);
}
