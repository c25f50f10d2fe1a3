/*
 * logescape - untrusted text for a log line: what comes out is printable ASCII, so
 * that no text can forge a line, a key or a colour of the terminal.
 */
#ifndef HC_LOGESCAPE_H
#define HC_LOGESCAPE_H

#include <stddef.h>

/* One word: blanks, quotes, backslashes and every byte that is no printable ASCII
 * become \xNN, so that the text can be read back exactly. Cut before the escape
 * that no longer fits. Returns out. */
const char *log_escape(const void *text, size_t n, char *out, size_t out_n);

enum { LOG_QUOTE_MAX = 320 };

/* In double quotes: blanks stay, quotes and backslashes come after a backslash, the
 * rest is \xNN. Cut texts end in three dots. size >= 16. Returns out. */
const char *log_quote(char *out, size_t size, const char *text);

/* For an argument list: lives until the end of the enclosing block. */
#define LOG_QUOTED(text) log_quote((char[LOG_QUOTE_MAX]){ 0 }, LOG_QUOTE_MAX, text)

#endif
