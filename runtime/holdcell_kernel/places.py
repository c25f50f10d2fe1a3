"""Directories for IPython and matplotlib that never stop a kernel from starting.

A session's home may be full, its /tmp may be full, and a kernel must come up all
the same so that its user can tidy up. Nothing is put into the home directory
unless its owner made ~/.ipython there.
"""

import os
import shutil
import sys
import tempfile

INLINE_BACKEND = "module://matplotlib_inline.backend_inline"
FONT_CACHE = os.path.join(sys.prefix, "share", "matplotlib")


def usable(path):
    """Whether path is, or could be made, a directory we may write to."""
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
    except OSError:
        return False
    return os.access(path, os.W_OK | os.X_OK)


def private_directory(name):
    """The first usable one of a few, or None."""
    for parent in (os.environ.get("TMPDIR"), "/tmp", "/dev/shm"):
        if parent and usable(os.path.join(parent, ".holdcell", name)):
            return os.path.join(parent, ".holdcell", name)
    return None


def prepare_tempdir():
    """tempfile tries to write; without a verdict every cell would fail in the compiler."""
    try:
        tempfile.gettempdir()
    except OSError:
        tempfile.tempdir = os.environ.get("TMPDIR") or "/tmp"


def prepare_ipython():
    if os.environ.get("IPYTHONDIR") and usable(os.environ["IPYTHONDIR"]):
        return
    own = os.path.expanduser("~/.ipython")
    if os.path.isdir(own) and os.access(own, os.W_OK | os.X_OK):
        os.environ["IPYTHONDIR"] = own
        return
    directory = private_directory("ipython")
    if directory:
        os.environ["IPYTHONDIR"] = directory
    else:  # app.py does without a profile directory
        os.environ.pop("IPYTHONDIR", None)


def copy_font_cache(directory):
    """Give matplotlib the prebuilt list of fonts; without it the first plot takes a second."""
    try:
        names = os.listdir(FONT_CACHE)
    except OSError:
        return
    for name in names:
        target = os.path.join(directory, name)
        if os.path.lexists(target):
            continue
        try:
            shutil.copyfile(os.path.join(FONT_CACHE, name), target)
        except OSError:
            try:  # a full disk leaves a truncated copy, which would be worse than none
                os.unlink(target)
            except OSError:
                pass


def prepare_matplotlib():
    os.environ.setdefault("MPLBACKEND", INLINE_BACKEND)
    directory = os.environ.get("MPLCONFIGDIR")
    own = os.path.expanduser("~/.config/matplotlib")
    if not directory and not os.path.isdir(own):
        directory = private_directory("matplotlib")
        if directory:
            os.environ["MPLCONFIGDIR"] = directory
    if directory and usable(directory):
        copy_font_cache(directory)


def prepare():
    prepare_tempdir()
    prepare_ipython()
    prepare_matplotlib()
