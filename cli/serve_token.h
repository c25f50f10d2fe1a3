/* serve_token - which token `holdcell serve` asks its clients for: options, variables, chance. */
#ifndef HC_SERVE_TOKEN_H
#define HC_SERVE_TOKEN_H

#include "cleanup.h"

struct err;
struct option_reader;
struct serve_options;

/* Fills token_text, token_live and token_made. Takes the variables with tokens out of
 * the environment, whatever comes of them. */
int serve_token_choose(const struct option_reader *r, struct serve_options *o,
                       struct err *e) MUST_CHECK;

/* The value of --token must not stay where every user of the host can read it. */
void serve_token_wipe(int argc, char **argv);

#endif
