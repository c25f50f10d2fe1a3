/*
 * log - one line per event on stderr: `level=... event=... key=value`. Never
 * blocks: whoever reads stderr may stop, the launcher must not. Ids, not
 * payloads; untrusted text goes through LOG_QUOTED().
 */
#ifndef HC_LAUNCHER_LOG_H
#define HC_LAUNCHER_LOG_H

#include <stddef.h>

enum { LOG_QUOTE_MAX = 320 };

/* Lines beyond a burst of 200 and 50 a second are held back; the next line that
 * passes is preceded by one that tells how many. */
void log_info(const char *event, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_warn(const char *event, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_error(const char *event, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Writes text in double quotes; quotes, backslashes and every byte that is no
 * printable ASCII come out escaped, so that no text can forge a line or drive a
 * terminal. Cut texts end in three dots. size >= 16. Returns out. */
const char *log_quote(char *out, size_t size, const char *text);

/* For an argument list: lives until the end of the enclosing block. */
#define LOG_QUOTED(text) log_quote((char[LOG_QUOTE_MAX]){ 0 }, LOG_QUOTE_MAX, text)

#endif
