"""The end of the process, whatever cells have left that would hold it up.

The interpreter waits for threads without end. Who asked for the end with exit() would have a kernel that is idle, and
never answers again.
"""

import atexit
import contextlib
import faulthandler
import gc
import io
import os
import signal
import stat
import threading

from .signals import works_in

THREADS_S = 5  # for threads of the user
REST_S = 30  # then, for what is registered with atexit, and `__del__`
NAMES_MAX = 5


class StillHeld(Exception):
    """The time for threads is over."""


def raise_still_held(signum, frame):
    # not in what comes after it, nor on the way there
    if works_in(frame, threading._shutdown):
        raise StillHeld


def wait_for_threads():
    """As the interpreter does it, which finds nothing to wait for then. Returns those that still run."""
    signal.signal(signal.SIGALRM, raise_still_held)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
    signal.setitimer(signal.ITIMER_REAL, THREADS_S, 1)  # again, where it was swallowed
    try:
        # Idle workers of a pool are told to end; joining threads by ourselves would not do that.
        threading._shutdown()
        return []
    except StillHeld:
        return [t for t in threading.enumerate() if not t.daemon and t is not threading.main_thread()]
    except BaseException:
        return []  # of what a library has for the end of threads: the interpreter comes to it again, and tells of it
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def told(threads):
    names = ", ".join(ascii(thread.name)[:60] for thread in threads[:NAMES_MAX])
    more = f" and {len(threads) - NAMES_MAX} more" if len(threads) > NAMES_MAX else ""
    return f"holdcell_kernel: ended beside threads that did not end within {THREADS_S} s: {names}{more}\n"


def write_files():
    """What is written when the interpreter takes its modules apart. Pipes and sockets may wait for ever."""
    gc.unfreeze()
    for held in gc.get_objects():
        with contextlib.suppress(Exception):
            if isinstance(held, (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)) and not held.closed and \
                    stat.S_ISREG(os.fstat(held.fileno()).st_mode):
                held.flush()


def finish(log_fd):
    """Returns where the interpreter can end as ever."""
    log_fd = os.dup(2 if log_fd is None else log_fd)  # the streams close theirs
    threads = wait_for_threads()
    # beyond that it says where the main thread stands, and ends the process with status 1
    faulthandler.dump_traceback_later(REST_S, exit=True, file=log_fd)
    if not threads:
        return
    try:
        with contextlib.suppress(OSError):
            os.write(log_fd, told(threads).encode())
        atexit._run_exitfuncs()
        write_files()
    finally:
        os._exit(0)
