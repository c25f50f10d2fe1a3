/* messagetypes - the types of messages that clients send, as the Jupyter protocol has them. */
#ifndef HC_MESSAGETYPES_H
#define HC_MESSAGETYPES_H

/* Logs a warning for each type of the ','-list (may be NULL) that is none of them: a kernel may have
 * types of its own, a slip of the pen looks the same. */
void messagetypes_warn(const char *option, const char *types);

#endif
