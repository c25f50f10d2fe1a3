/* script - what zconsole does in the gateway's place. */
#ifndef HC_SCRIPT_H
#define HC_SCRIPT_H

#include "cleanup.h"

struct err;

/*
 * Runs the setting `env.SCRIPT`, one command a line; a gateway that finds living
 * sandboxes runs `env.SCRIPT2`. \n in code is two characters.
 *   create [memory_mb=N] [pids=N] [home_mb=N]    -> created sandbox=0|1
 *   start SPEC KERNEL GENERATION fds|files ARGV...
 *   run CODE | begin CODE | finish | answer TEXT
 *   signal NAME [group] | seal | status | note TEXT | list
 *   stop kernel|session | wait exited|oom|gone
 *   file PATH                                     reads a file through init
 *   pause MS | deadline MS                        MS from now
 *   crash                                         ends this gateway by a malformed packet
 * A refusal by the launcher prints `refused: text` and goes on.
 */
int script_run(int launcher_fd, int settings_fd, int ready_fd, struct err *e) MUST_CHECK;

#endif
