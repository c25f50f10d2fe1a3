/* processuse - what this process uses of the host, for metrics.h. */
#ifndef HC_PROCESSUSE_H
#define HC_PROCESSUSE_H

void processuse_start(void); /* remembers when the process began */
void processuse_measure(void);

#endif
