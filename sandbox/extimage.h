/*
 * extimage - ext4 file systems in files: made from templates, and mounted detached
 * by a loop device. Only the kernel's driver ever writes one: a session has files in
 * it, never its blocks.
 */
#ifndef HC_EXTIMAGE_H
#define HC_EXTIMAGE_H

#include <stdint.h>

#include "cleanup.h"

struct err;

enum { EXTIMAGE_TEMPLATES = 8 };

/* What a user of the file system can have, about; a size has room for its metadata beside. */
struct extimage_spec {
    uint64_t bytes;
    uint32_t inodes;
    int journal;    /* outlives a crash of the host */
    uint32_t owner; /* of its root directory */
};

/* Formatted once per spec: a copy of some blocks is what each image costs then. */
struct extimage_cache {
    struct {
        struct extimage_spec spec;
        int fd; /* owned memfd, mostly holes; 0: free place */
        uint64_t used;
    } templates[EXTIMAGE_TEMPLATES];
    uint64_t clock;
};

void extimage_cache_clear(struct extimage_cache *c);
/* Makes the template now. */
int extimage_prepare(struct extimage_cache *c, const struct extimage_spec *spec,
                     struct err *e) MUST_CHECK;

/* The size of the file for a spec, with metadata. */
uint64_t extimage_size(const struct extimage_spec *spec);

/* Fills an empty file, all of whose blocks are then the file's: the host's disk cannot run full
 * under it. -ENOSPC: it is full. -EOPNOTSUPP: it cannot promise blocks (diskroom.h). */
int extimage_make(struct extimage_cache *c, const struct extimage_spec *spec, int file_fd,
                  struct err *e) MUST_CHECK;

/* Another detached mount each time; mounts of one device share the file system, which is
 * unmounted with the last. lasting: its content outlives the mount, so order and barriers are kept. */
int extimage_mount(int device_fd, int lasting, int *ret_fd, struct err *e) MUST_CHECK;

/* Nothing of it is wanted any more: what is not written yet never is, so that its unmounting takes no time.
 * fd: a directory in it, open for reading. */
void extimage_drop(int fd);

#endif
