/*
 * optionvalue - checks of option values that are text: what can be told to the
 * one who starts the server is told at once, by the name of the option.
 * Each returns 0 for NULL (the option is not given), -EINVAL otherwise.
 */
#ifndef HC_OPTIONVALUE_H
#define HC_OPTIONVALUE_H

#include "cleanup.h"

struct err;

/* The value of an HTTP header: no control character, no end of line. */
int optionvalue_header(const char *option, const char *value, struct err *e) MUST_CHECK;

/* The name of an HTTP header. */
int optionvalue_header_name(const char *option, const char *value, struct err *e) MUST_CHECK;

/* `*`, or scheme://host[:port] as browsers send it. */
int optionvalue_origin(const char *option, const char *value, struct err *e) MUST_CHECK;

/* A path; a URL is refused as what it is. */
int optionvalue_file(const char *option, const char *value, struct err *e) MUST_CHECK;

int optionvalue_seconds(const char *option, const char *value, struct err *e) MUST_CHECK;

/* One name of a kernelspec, or a comma list of them. */
int optionvalue_kernels(const char *option, const char *value, struct err *e) MUST_CHECK;

/* A comma list of names of environment variables. */
int optionvalue_types(const char *option, const char *value, struct err *e) MUST_CHECK;
int optionvalue_variables(const char *option, const char *value, struct err *e) MUST_CHECK;
int optionvalue_log_format(const char *option, const char *value, struct err *e) MUST_CHECK;
int optionvalue_log_level(const char *option, const char *value, struct err *e) MUST_CHECK;
int optionvalue_isolation(const char *option, const char *value, struct err *e) MUST_CHECK;
int optionvalue_walls(const char *option, const char *value, struct err *e) MUST_CHECK;
int optionvalue_workspaces(const char *option, const char *value, struct err *e) MUST_CHECK;
int optionvalue_home(const char *option, const char *value, struct err *e) MUST_CHECK;
int optionvalue_access_log(const char *option, const char *value, struct err *e) MUST_CHECK;

#endif
