/*
 * fake_core - sessions, kernels and clients without launcher, ZeroMQ and
 * processes: the front is tested on it. Kernels run a script of a few words that
 * a test writes into execute_request.content.code:
 *
 *   echo TEXT     a stream with TEXT
 *   parts         a display_data whose content is the request's content
 *   burst N SIZE  N streams of SIZE bytes, each beginning with its number
 *   buffers       a display_data with two buffers
 *   full MS       after this the kernel takes nothing for MS milliseconds
 *   end N         all clients of the kernel are ended with enum client_end N
 *
 * Then an execute_reply to who sent it. All in the loop's thread but for the
 * atomics below.
 */
#ifndef HC_FAKE_CORE_H
#define HC_FAKE_CORE_H

#include <stdatomic.h>

struct kernelspecs;
struct loop;
struct sessions;

struct fake {
    _Atomic unsigned
        create_ms; /* delay of create, restart and delete; 0: the answer comes within the call */
    _Atomic int starting;         /* a kernel is not ready before `create_ms` after it is asked */
    _Atomic unsigned max_kernels; /* 0: no limit */
    _Atomic int calls;            /* operations that have not called back */
    _Atomic int clients;          /* attached */
    _Atomic int received;         /* messages that kernels took */
    _Atomic int pulled;           /* events that client_next() handed out */
    _Atomic unsigned spec_bytes;  /* padding of the kernelspec "fake" */
};
extern struct fake fake;

void fake_reset(void);
struct sessions *fake_sessions_new(struct loop *l);
struct sessions *fake_sessions_free(struct sessions *s);
/* specs "fake", "Other.1" and, in the directory dir, resources of "fake". */
struct kernelspecs *fake_specs_new(const char *dir);
struct kernelspecs *fake_specs_free(struct kernelspecs *k);

#endif
