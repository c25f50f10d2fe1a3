"""Entry point: what must happen before anything heavy is imported."""

import atexit
import gc
import os
import signal
import sys

from .signals import ignore_interrupt

# before anything that takes time
signal.signal(signal.SIGINT, ignore_interrupt)
# until KernelApp.start: there is no garbage to find
gc.disable()

from . import ending, handover, places  # noqa: E402

app = None


@atexit.register  # the first one is called last, after all that others want done at the end
def leave_nothing_to_search():
    """One search for garbage instead of the interpreter's own, which take longer than all else of the end.

    A DELETE or a restart waits for them. What a cell left has to end as ever: files in reference cycles are written,
    `__del__` is called. So the variables go first, while everything that they may need still works.
    """
    if app is not None:
        app.let_go()
    gc.collect()
    gc.freeze()


def connection_file_of(argv):
    """The value of -f FILE, -f=FILE or --f=FILE, the forms kernelspecs use."""
    for index, word in enumerate(argv):
        if word == "-f" and index + 1 < len(argv):
            return argv[index + 1]
        if word.startswith(("-f=", "--f=")):
            return word.partition("=")[2]
    return ""


def main():
    global app
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    # It would make ipykernel end itself: inside a pid namespace the parent is not
    # the process that the variable names.
    os.environ.pop("JPY_PARENT_PID", None)

    handed = None
    if handover.names_a_descriptor(connection_file_of(sys.argv)):
        try:
            handed = handover.take(connection_file_of(sys.argv))
        except handover.HandoverError as error:
            print(f"holdcell_kernel: {error}", file=sys.stderr)
            return 78  # EX_CONFIG

    places.prepare()
    from .app import HandedKernelApp, KernelApp

    # What is imported by now stays: no search for garbage looks at it again. What the kernel is made of is not among it.
    gc.freeze()
    if handed is None:
        app = KernelApp.instance()
        app.initialize()
    else:
        app = HandedKernelApp.instance(handed=handed)
        # argparse in a cell must see no options of ours
        sys.argv[1:] = []
        app.initialize([])
    app.start()
    ending.finish(app.log_fd)
    return 0


if __name__ == "__main__":
    sys.exit(main())
