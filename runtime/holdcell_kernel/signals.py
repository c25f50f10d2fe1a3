"""What SIGINT means when no code of the user runs. Imports nothing heavy."""


def ignore_interrupt(signum, frame):
    """Between two cells, and while the kernel starts, an interrupt means nothing.

    A function and not SIG_IGN: an ignored signal is inherited through exec, and
    programs started from a background thread could never be interrupted.
    """
