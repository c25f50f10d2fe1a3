/* The note for the next gateway, and the row of seats in it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "cull.h"
#include "err.h"
#include "launchmsg.h"
#include "note.h"
#include "noteitem.h"
#include "noteseats.h"
#include "runclock.h"

static struct note example(void)
{
    return (struct note){ .principal = "default",
                          .id = "00000000-0000-4000-8000-000000000000",
                          .spec_name = "python3",
                          .spec_dir = 3,
                          .sockets_fd = 1,
                          .generation = 7,
                          .key = "a0436f6c-1916498bb8ebe81ab9368e84",
                          .base = "0123456789abcdef",
                          .session = "8e84",
                          .cull_ms = 90000,
                          .last_us = 1796000000000000,
                          .last_ms = 77,
                          .busy = 1,
                          .seeding = 1,
                          .times = { .cell_ms = 60000, .life_ms = 1000 },
                          .born_ms = 12,
                          .numbered = 34,
                          .workspace_bytes = UINT64_C(5) << 30,
                          .overdue = 1,
                          .fds = 7,
                          .ending = 1,
                          .kept = "[{\"path\":\"a.ipynb\"}]" };
}

static void a_note_comes_back_as_it_was(void **state)
{
    struct note n = example(), back;
    autobuf struct buf out = { 0 };

    (void)state;
    buf_init(&out, LAUNCH_NOTE_MAX);
    assert_int_equal(note_encode(&n, &out, NULL), 0);
    assert_int_equal(note_decode(buf_view(&out), &back, NULL), 0);
    assert_int_equal(back.seats.n, 0);
    n.seats = back.seats;
    assert_memory_equal(&n, &back, sizeof n);
}

static void a_note_of_version_1_is_taken_without_seats(void **state)
{
    static const char old[] =
        "{\"version\":1,\"principal\":\"default\",\"id\":\"00000000-0000-4000-8000-000000000000\","
        "\"spec\":\"python3\",\"key\":\"a-b\",\"base\":\"0a\",\"spec_dir\":1,\"sockets_fd\":1,"
        "\"interrupt_by_message\":0,\"generation\":2,\"fds\":7}";
    struct note n;
    struct err e;

    (void)state;
    if (note_decode(view_cstr(old), &n, &e) < 0)
        fail_msg("%s", e.msg);
    assert_string_equal(n.base, "0a");
    assert_string_equal(n.session, "");
    assert_int_equal(n.seats.n, 0);
    assert_int_equal(n.workspace_bytes, 0);
}

static void a_note_of_a_later_version_is_refused_by_name(void **state)
{
    struct note back;
    struct err e;

    (void)state;
    assert_int_equal(note_decode(view_cstr("{\"version\":3}"), &back, &e), -HC_EPARSE);
    assert_non_null(strstr(e.msg, "version"));
}

static void put_item(struct buf *out, enum noteitem_kind kind, unsigned flags, const char *text)
{
    const struct noteitem i = { kind, flags, view_cstr(text) };

    assert_int_equal(noteitem_put(out, &i), 0);
}

static void the_seats_of_a_note_come_back_in_their_order(void **state)
{
    struct note n = example(), back;
    autobuf struct buf items = { 0 }, out = { 0 };
    struct noteitem i;

    (void)state;
    buf_init(&items, LAUNCH_NOTE_MAX);
    buf_init(&out, LAUNCH_NOTE_MAX);
    put_item(&items, NOTEITEM_SEAT, NOTEITEM_RETURNS, "sid");
    put_item(&items, NOTEITEM_IDENTITY, 0, "0123");
    put_item(&items, NOTEITEM_RUN, NOTEITEM_BUSY | NOTEITEM_STDIN, "{\"msg_id\":\"1\"}");
    put_item(&items, NOTEITEM_CLOCK, 0, "12345678901234567890123456789012");
    assert_int_equal(noteitem_put_sent(&items, &(struct noteitem_sent){ 7, 1ull << 40 }), 0);
    put_item(&items, NOTEITEM_ASK, 2, "");
    n.seats = buf_view(&items);
    assert_int_equal(note_encode(&n, &out, NULL), 0);
    assert_int_equal(note_decode(buf_view(&out), &back, NULL), 0);
    assert_int_equal(noteitem_next(&back.seats, &i, NULL), 1);
    assert_int_equal(i.kind, NOTEITEM_SEAT);
    assert_true(view_equals(i.bytes, "sid"));
    assert_int_equal(noteitem_next(&back.seats, &i, NULL), 1);
    assert_true(view_equals(i.bytes, "0123"));
    assert_int_equal(noteitem_next(&back.seats, &i, NULL), 1);
    assert_int_equal(i.flags, NOTEITEM_BUSY | NOTEITEM_STDIN);
    assert_int_equal(noteitem_next(&back.seats, &i, NULL), 1);
    assert_int_equal(i.kind, NOTEITEM_CLOCK);
    assert_int_equal(i.bytes.n, RUNCLOCK_BYTES);
    assert_int_equal(noteitem_next(&back.seats, &i, NULL), 1);
    assert_int_equal(i.kind, NOTEITEM_SENT);
    assert_int_equal(noteitem_sent(&i).number, 7);
    assert_int_equal(noteitem_sent(&i).sent_us, 1ull << 40);
    assert_int_equal(noteitem_next(&back.seats, &i, NULL), 1);
    assert_int_equal(i.bytes.n, 0);
    assert_int_equal(noteitem_next(&back.seats, &i, NULL), 0);
    /* Cut anywhere it is refused as a whole. */
    for (size_t cut = 0; cut < buf_len(&out); cut++)
        assert_int_equal(note_decode((struct view){ buf_view(&out).p, cut }, &back, NULL),
                         -HC_EPARSE);
}

static void damaged_items_are_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
    } bad[] = {
        { "\x01", 1 },                    /* cut in the head */
        { "\x01\0\x05\0ab", 6 },          /* cut in the bytes */
        { "\x03\0\0\0", 4 },              /* no seat before it */
        { "\x00\0\0\0", 4 },              /* no such kind */
        { "\x09\0\0\0", 4 },              /* likewise */
        { "\x01\0\x02\0a\0", 6 },         /* a NUL in a session_id */
        { "\x01\0\x01\0a\x02\0\0\0", 9 }, /* an empty identity */
        /* a clock that is cut short, and one without a run */
        { "\x01\0\x01\0a\x03\0\x01\0{\x05\0\x01\0x", 15 },
        { "\x01\0\x01\0a\x05\0\x20\0xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 41 },
        /* when it was sent: likewise */
        { "\x01\0\x01\0a\x03\0\x01\0{\x06\0\x01\0x", 15 },
        { "\x01\0\x01\0a\x06\0\x10\0xxxxxxxxxxxxxxxx", 25 },
        /* how many ends more: cut short, and more than anybody counts */
        { "\x01\0\x01\0a\x07\0\x07\0xxxxxxx", 16 },
        { "\x01\0\x01\0a\x07\0\x08\0\0\0\0\0\x01\0\0\0", 17 },
        /* ... and a number after which there is no next one */
        { "\x01\0\x01\0a\x03\0\x01\0{\x06\0\x10\0\x01\0\0\0\0\0\x20\0\0\0\0\0\0\0\0\0", 30 },
    };
    char big[NOTEITEM_BYTES_MAX + 2];
    autobuf struct buf out = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const struct view v = { (const uint8_t *)bad[i].bytes, bad[i].n };

        if (noteitem_check(v, NULL) != -HC_EPARSE)
            fail_msg("%zu", i);
    }
    buf_init(&out, 8);
    memset(big, 'x', sizeof big);
    big[sizeof big - 1] = '\0';
    assert_int_equal(noteitem_put(&out, &(struct noteitem){ NOTEITEM_RUN, 0, view_cstr(big) }),
                     -HC_ELIMIT);
    assert_int_equal(noteitem_put(&out, &(struct noteitem){ NOTEITEM_RUN, 0, view_cstr("12345") }),
                     -EMSGSIZE);
    assert_int_equal(buf_len(&out), 0);
}

static void the_number_of_ends_without_room_comes_back(void **state)
{
    autobuf struct buf out = { 0 };
    struct noteitem i;

    (void)state;
    buf_init(&out, 64);
    assert_int_equal(noteitem_put_more(&out, UINT32_MAX), 0);
    struct view rest = buf_view(&out);
    assert_int_equal(noteitem_next(&rest, &i, NULL), 1);
    assert_int_equal(i.kind, NOTEITEM_MORE);
    assert_int_equal(noteitem_more(&i), UINT32_MAX);
    assert_int_equal(rest.n, 0);
}

static void seats_that_are_more_than_a_note_holds_come_back_from_their_file(void **state)
{
    autobuf struct buf items = { 0 }, back = { 0 };
    char header[1024];
    int fd = -1;

    (void)state;
    memset(header, 'h', sizeof header);
    header[sizeof header - 1] = '\0';
    buf_init(&items, NOTESEATS_MAX);
    put_item(&items, NOTEITEM_SEAT, NOTEITEM_RETURNS, "sid");
    while (buf_len(&items) < 4 * LAUNCH_NOTE_MAX)
        put_item(&items, NOTEITEM_RUN, 0, header);
    assert_int_equal(noteseats_memfd(buf_view(&items), &fd, NULL), 0);
    assert_int_equal(write(fd, "x", 1), -1); /* sealed */
    assert_int_equal(noteseats_read(fd, &back, NULL), 0);
    assert_int_equal(buf_len(&back), buf_len(&items));
    assert_memory_equal(buf_view(&back).p, buf_view(&items).p, buf_len(&items));
    close(fd);
}

static void file_is_refused(int fd, const char *why)
{
    autobuf struct buf back = { 0 };
    struct err e = { 0 };

    assert_int_equal(noteseats_read(fd, &back, &e), -HC_EPARSE);
    if (strstr(e.msg, why) == NULL)
        fail_msg("%s", e.msg);
}

static void a_file_that_cannot_be_one_of_seats_is_refused(void **state)
{
    int fd = memfd_create("test", MFD_CLOEXEC), pipes[2];

    (void)state;
    assert_true(fd >= 0);
    file_is_refused(fd, "wrong size");
    assert_int_equal(write(fd, "\x01\0\x05\0ab", 6), 6);
    file_is_refused(fd, "cut short");
    assert_int_equal(ftruncate(fd, NOTESEATS_MAX + 1), 0);
    file_is_refused(fd, "wrong size");
    assert_int_equal(pipe(pipes), 0);
    file_is_refused(pipes[0], "wrong size");
    close(pipes[0]);
    close(pipes[1]);
    close(fd);
}

static void a_note_without_activity_knows_of_none(void **state)
{
    struct note n = example(), back;
    autobuf struct buf out = { 0 };
    static const char *const optional[] = { "cull_ms", "last_us", "last_ms", "busy", "seeding" };

    (void)state;
    n.cull_ms = CULL_UNSET;
    buf_init(&out, LAUNCH_NOTE_MAX);
    assert_int_equal(note_encode(&n, &out, NULL), 0);
    json_t *o = json_loads((const char *)buf_view(&out).p, 0, NULL); /* to the NUL */
    assert_null(json_object_get(o, "cull_ms"));
    for (size_t i = 0; i < sizeof optional / sizeof optional[0]; i++)
        json_object_del(o, optional[i]);
    json_object_set_new(o, "version", json_integer(1));
    autofree char *text = json_dumps(o, 0);
    json_object_set_new(o, "last_ms", json_integer(-1));
    autofree char *negative = json_dumps(o, 0);
    json_decref(o);
    assert_int_equal(note_decode(view_cstr(text), &back, NULL), 0);
    assert_true(back.cull_ms == CULL_UNSET);
    assert_int_equal(back.last_us + back.last_ms + (uint64_t)back.busy + (uint64_t)back.seeding, 0);
    assert_int_equal(note_decode(view_cstr(negative), &back, NULL), -HC_EPARSE);
}

#define OLD_NOTE                                                                          \
    "{\"version\":1,\"principal\":\"p\",\"id\":\"00000000-0000-4000-8000-000000000000\"," \
    "\"spec\":\"s\",\"key\":\"a\",\"base\":\"\",\"spec_dir\":1,\"sockets_fd\":0,"         \
    "\"interrupt_by_message\":0,\"generation\":1,\"fds\":7"

static void a_note_of_before_lacks_what_came_later(void **state)
{
    struct note back;

    (void)state;
    memset(&back, 0xff, sizeof back);
    assert_int_equal(note_decode(VIEW_STR(OLD_NOTE "}"), &back, NULL), 0);
    assert_int_equal(back.ending, 0);
    assert_int_equal(back.times.cell_ms + back.times.life_ms + back.born_ms, 0);
    assert_int_equal(back.overdue, 0);
    assert_string_equal(back.kept, "");
}

static void what_is_kept_has_room_up_to_its_limit(void **state)
{
    struct note n = example(), back;
    autobuf struct buf out = { 0 };

    (void)state;
    memset(n.kept, 'x', NOTE_KEPT_MAX);
    memcpy(n.kept, "[\"", 2);
    memcpy(n.kept + NOTE_KEPT_MAX - 2, "\"]", 3);
    buf_init(&out, LAUNCH_NOTE_MAX);
    assert_int_equal(note_encode(&n, &out, NULL), 0);
    assert_int_equal(note_decode(buf_view(&out), &back, NULL), 0);
    n.seats = back.seats;
    assert_memory_equal(&n, &back, sizeof n);
}

static void a_damaged_note_is_refused_by_field(void **state)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"version\":2}",
        "{\"version\":0}",
        OLD_NOTE ",\"ending\":2}",
        OLD_NOTE ",\"cell-timeout-ms\":-1}",
        OLD_NOTE ",\"max-lifetime-ms\":31622400001}",
        OLD_NOTE ",\"born_ms\":\"1\"}",
        OLD_NOTE ",\"numbered\":9007199254740993}",
        OLD_NOTE ",\"kept\":\"[]\"}",
        "{\"version\":1,\"principal\":\"p\",\"id\":\"no\",\"spec\":\"s\",\"key\":\"a\",\"base\":"
        "\"\",\"spec_dir\":0,"
        "\"sockets_fd\":0,\"interrupt_by_message\":0,\"generation\":1,\"fds\":7}",
        "{\"version\":1,\"principal\":\"p\",\"id\":\"00000000-0000-4000-8000-000000000000\","
        "\"spec\":\"s\",\"key\":\"../x\","
        "\"base\":\"\",\"spec_dir\":0,\"sockets_fd\":0,\"interrupt_by_message\":0,\"generation\":1,"
        "\"fds\":7}",
        "{\"version\":1,\"principal\":\"p\",\"id\":\"00000000-0000-4000-8000-000000000000\","
        "\"spec\":\"s\",\"key\":\"a\","
        "\"base\":\"a/../"
        "b\",\"spec_dir\":0,\"sockets_fd\":0,\"interrupt_by_message\":0,\"generation\":1,\"fds\":"
        "7}",
        "{\"version\":1,\"principal\":\"p\",\"id\":\"00000000-0000-4000-8000-000000000000\","
        "\"spec\":\"s\",\"key\":\"a\","
        "\"base\":\"\",\"spec_dir\":256,\"sockets_fd\":0,\"interrupt_by_message\":0,\"generation\":"
        "1,\"fds\":7}",
    };
    struct note back;
    struct err e;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(note_decode(view_cstr(bad[i]), &back, &e), -HC_EPARSE);
}

static void a_note_cut_anywhere_is_refused(void **state)
{
    struct note n = example(), back;
    autobuf struct buf out = { 0 };

    (void)state;
    buf_init(&out, LAUNCH_NOTE_MAX);
    assert_int_equal(note_encode(&n, &out, NULL), 0);
    for (size_t cut = 0; cut < buf_len(&out); cut++)
        assert_int_equal(note_decode((struct view){ buf_view(&out).p, cut }, &back, NULL),
                         -HC_EPARSE);
}

static void fill(char *out, size_t n, unsigned *seed)
{
    for (size_t i = 0; i < n; i++) {
        *seed = *seed * 1103515245u + 12345u;
        out[i] = (char)(*seed >> 16);
    }
    out[n - 1] = '\0';
}

/* A kernel names its session as it likes. */
static void whatever_bytes_its_texts_are_a_note_can_be_read_again(void **state)
{
    struct note n = example(), back;
    unsigned seed = 1;
    struct err e;

    (void)state;
    for (int byte = 1; byte < 256 + 2000; byte++) {
        autobuf struct buf out = { 0 };

        if (byte < 256) {
            memset(n.session, byte, sizeof n.session - 1);
            memset(n.principal, byte, sizeof n.principal - 1);
            memset(n.spec_name, byte, sizeof n.spec_name - 1);
        } else {
            fill(n.session, sizeof n.session, &seed);
            fill(n.principal, sizeof n.principal, &seed);
            fill(n.spec_name, sizeof n.spec_name, &seed);
        }
        buf_init(&out, LAUNCH_NOTE_MAX);
        assert_int_equal(note_encode(&n, &out, &e), 0);
        if (note_decode(buf_view(&out), &back, &e) < 0)
            fail_msg("%d: %s", byte, e.msg);
        if (byte < 128)
            assert_string_equal(n.session, back.session);
    }
}

static void what_repair_made_too_long_is_cut_between_characters(void **state)
{
    struct note n = example(), back;
    autobuf struct buf out = { 0 };

    (void)state;
    memset(n.session, 0xff, sizeof n.session - 1);
    buf_init(&out, LAUNCH_NOTE_MAX);
    assert_int_equal(note_encode(&n, &out, NULL), 0);
    assert_int_equal(note_decode(buf_view(&out), &back, NULL), 0);
    assert_int_equal(strlen(back.session), 126); /* 42 times U+FFFD */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_note_comes_back_as_it_was),
        cmocka_unit_test(a_note_of_version_1_is_taken_without_seats),
        cmocka_unit_test(a_note_of_a_later_version_is_refused_by_name),
        cmocka_unit_test(the_seats_of_a_note_come_back_in_their_order),
        cmocka_unit_test(damaged_items_are_refused),
        cmocka_unit_test(the_number_of_ends_without_room_comes_back),
        cmocka_unit_test(seats_that_are_more_than_a_note_holds_come_back_from_their_file),
        cmocka_unit_test(a_file_that_cannot_be_one_of_seats_is_refused),
        cmocka_unit_test(a_note_without_activity_knows_of_none),
        cmocka_unit_test(a_note_of_before_lacks_what_came_later),
        cmocka_unit_test(what_is_kept_has_room_up_to_its_limit),
        cmocka_unit_test(a_damaged_note_is_refused_by_field),
        cmocka_unit_test(a_note_cut_anywhere_is_refused),
        cmocka_unit_test(whatever_bytes_its_texts_are_a_note_can_be_read_again),
        cmocka_unit_test(what_repair_made_too_long_is_cut_between_characters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
