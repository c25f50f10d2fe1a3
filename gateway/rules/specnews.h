/* specnews - what the log was told of kernelspecs that cannot be used: specs are read afresh at each request,
 * and each fault is told once, until it is another one or was gone meanwhile. */
#ifndef HC_SPECNEWS_H
#define HC_SPECNEWS_H

struct err;
struct specnews;

struct specnews *specnews_new(void);
struct specnews *specnews_free(struct specnews *n); /* accepts NULL, returns NULL */

/* dir: the kernel path directory. name: of a directory below its kernels. n may be NULL: nothing is told. */
void specnews_bad(struct specnews *n, const char *dir, const char *name, const struct err *e);
void specnews_good(struct specnews *n, const char *dir, const char *name);

#endif
