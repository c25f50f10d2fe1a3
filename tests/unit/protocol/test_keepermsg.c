/* KEEPER_VERSION stands for three protocols: a change of one of them has to be seen. */
#include "keepermsg.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "initmsg.h"
#include "launchmsg.h"

enum { VERBS = 256 };

static void mix(uint64_t *hash, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        *hash = (*hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3; /* FNV-1a */
}

/* Offsets are left out: they are those of structs in memory, not of packets. */
static void mix_spec(uint64_t *hash, const struct msg_spec *s)
{
    if (s == NULL)
        return;
    mix(hash, &s->verb, sizeof s->verb);
    mix(hash, &s->fds_min, sizeof s->fds_min);
    mix(hash, &s->fds_max, sizeof s->fds_max);
    for (unsigned i = 0; i < s->count; i++) {
        const struct msg_field *f = &s->fields[i];

        mix(hash, f->name, strlen(f->name));
        mix(hash, &f->kind, sizeof f->kind);
        mix(hash, &f->optional, sizeof f->optional);
        mix(hash, &f->max, sizeof f->max);
    }
}

static void the_version_stands_for_these_messages(void **state)
{
    static const struct {
        uint32_t version;
        uint64_t digest;
    } known = { 5, UINT64_C(0xac4ad2802773b3e6) };
    const struct msg_spec *(*const tables[])(unsigned) = {
        keeper_request_spec, keeper_answer_spec, launch_request_spec, launch_answer_spec,
        launch_event_spec,   init_request_spec,  init_answer_spec,    init_event_spec,
    };
    uint64_t hash = 0xcbf29ce484222325;

    (void)state;
    for (unsigned i = 0; i < sizeof tables / sizeof *tables; i++)
        for (unsigned verb = 0; verb < VERBS; verb++)
            mix_spec(&hash, tables[i](verb));
    assert_int_equal(KEEPER_VERSION, known.version);
    if (hash != known.digest)
        fail_msg("the messages are others (digest 0x%016" PRIx64 "): raise KEEPER_VERSION unless a "
                 "launcher or init built before understands them too, then put the digest here",
                 hash);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_version_stands_for_these_messages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
