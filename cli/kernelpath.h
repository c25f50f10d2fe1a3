/* kernelpath - the list of directories that kernelspecs come from. */
#ifndef HC_KERNELPATH_H
#define HC_KERNELPATH_H

#include "cleanup.h"

struct err;

/* The directories of the ':'-list `given` (may be NULL) made absolute, then the
 * runtime's share/jupyter. Launcher and gateway get this same text, so that an
 * index means the same directory for both. The caller frees *ret. A directory
 * may be missing: it is read again at each request. */
int kernelpath_complete(const char *given, const char *runtime, char **ret,
                        struct err *e) MUST_CHECK;

/* Logs a warning for each of the names (a ','-list, may be NULL) that is in no
 * directory of the completed list now. It may come later. */
void kernelpath_warn(const char *list, const char *option, const char *names);

/* Likewise for each variable by which Jupyter's servers find kernelspecs, when it names a
 * directory that is not in the completed list. */
void kernelpath_warn_of_jupyter(const char *list);

#endif
