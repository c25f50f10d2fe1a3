/*
 * hostids - the block of 65536 host user and group ids of one instance. Slot N
 * is taken from the host-wide lock table /run/holdcell/instances/<N>.
 *
 * The ids are not in /etc/passwd; they lie above what useradd, systemd's dynamic
 * users and container engines hand out (systemd.io/UIDS-GIDS).
 */
#ifndef HC_HOSTIDS_H
#define HC_HOSTIDS_H

#include <stdint.h>

enum {
    HOSTIDS_SLOTS = 512,
    HOSTIDS_BLOCK = 0x10000,
};

static inline uint32_t hostids_base(unsigned slot)
{
    return 0x70000000U + slot * (uint32_t)HOSTIDS_BLOCK;
}

static inline uint32_t hostids_gateway(uint32_t base)
{
    return base + 1;
}

#endif
