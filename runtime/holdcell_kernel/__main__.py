"""Entry point: what must happen before anything heavy is imported."""

import atexit
import gc
import os
import signal
import sys

from .signals import ignore_interrupt

# before anything that takes time
signal.signal(signal.SIGINT, ignore_interrupt)
# what is imported stays: looking for garbage in it is wasted until KernelApp.start
gc.disable()
# After all that others want done at the end (the first one is called last): the interpreter searches everything for
# garbage twice before it goes, which takes longer than all else of the end, for which a DELETE or a restart waits.
atexit.register(gc.freeze)

from . import handover, places  # noqa: E402


def connection_file_of(argv):
    """The value of -f FILE, -f=FILE or --f=FILE, the forms kernelspecs use."""
    for index, word in enumerate(argv):
        if word == "-f" and index + 1 < len(argv):
            return argv[index + 1]
        if word.startswith(("-f=", "--f=")):
            return word.partition("=")[2]
    return ""


def main():
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

    if handed is None:
        app = KernelApp.instance()
        app.initialize()
    else:
        app = HandedKernelApp.instance(handed=handed)
        # argparse in a cell must see no options of ours
        sys.argv[1:] = []
        app.initialize([])
    app.start()
    return 0


if __name__ == "__main__":
    sys.exit(main())
