#include "keepermsg.h"

#include "msgtable.h"
#include "sessionprofile.h"
#include "settings.h"

static const struct msg_field hello_fields[] = {
    U32(keeper_hello, version),
    U32(keeper_hello, slot),
    TEXT(keeper_hello, runtime, KEEPER_PATH_MAX),
};
static const struct msg_field attach_fields[] = { BLOB(keeper_attach, argv, KEEPER_ARGV_MAX) };
static const struct msg_field profiles_fields[] = { BLOB(keeper_profiles, table, PROFILES_TEXT) };
static const struct msg_field count_fields[] = {
    U32(keeper_count, sessions),
    U32(keeper_count, failed),
};
static const struct msg_field error_fields[] = { TEXT(keeper_error, text, KEEPER_TEXT_MAX) };

static const struct msg_spec requests[] = {
    SPEC(KEEPER_KEEP, "KEEP", keeper_count, count_fields, 0, 0),
    SPEC(KEEPER_HELLO, "HELLO", keeper_hello, hello_fields, 0, 0),
    SPEC(KEEPER_ATTACH, "ATTACH", keeper_attach, attach_fields, KEEPER_MORE_FD,
         KEEPER_MORE_FD + LISTEN_MORE_MAX),
    SPEC(KEEPER_PROFILES, "PROFILES", keeper_profiles, profiles_fields, 0, 0),
};

static const struct msg_spec answers[] = {
    SPEC(KEEPER_HELLO, "HELLO", keeper_hello, hello_fields, KEEPER_OFFER_FDS, KEEPER_OFFER_FDS),
    SPEC(KEEPER_ATTACH, "ATTACH", keeper_count, count_fields, 0, 0),
    SPEC(KEEPER_PROFILES, "PROFILES", keeper_count, count_fields, 0, 0),
    SPEC(KEEPER_ERROR, "ERROR", keeper_error, error_fields, 0, 0),
    SPEC(KEEPER_KEPT, "KEPT", keeper_count, count_fields, 0, 0),
    SPEC(KEEPER_ENDED, "ENDED", keeper_count, count_fields, 0, 0),
};

const struct msg_spec *keeper_request_spec(unsigned verb)
{
    return FIND(requests, verb);
}

const struct msg_spec *keeper_answer_spec(unsigned verb)
{
    return FIND(answers, verb);
}
