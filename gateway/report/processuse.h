/* processuse - what this process uses of the host, for metrics.h. */
#ifndef HC_PROCESSUSE_H
#define HC_PROCESSUSE_H

/* Remembers when the process began, and keeps open what it reads: later no file may be. */
void processuse_start(void);
void processuse_measure(void);

#endif
