"""Directories for IPython and matplotlib that never stop a kernel from starting.

A session's home may be full, its /tmp may be full, and a kernel must come up all
the same so that its user can tidy up. Nothing is put into the home directory
unless its owner made ~/.ipython there.
"""

import contextlib
import os
import shutil
import stat
import sys
import tempfile

SHARED = ("/tmp", "/dev/shm")
INLINE_BACKEND = "module://matplotlib_inline.backend_inline"
FONT_CACHE = os.path.join(sys.prefix, "share", "matplotlib")


def usable(path):
    """Whether path is, or could be made, a directory we may write to."""
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
    except OSError:
        return False
    return os.access(path, os.W_OK | os.X_OK)


def ours_alone(path):
    """Makes that directory; whether nobody else made it, or may put anything into it."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)
    held = os.lstat(path)  # a link leads to where others say
    return stat.S_ISDIR(held.st_mode) and held.st_uid == os.geteuid() and not held.st_mode & 0o022


def private_directory(name):
    """The first usable one of a few, or None. IPython runs what is in it, and the parents may be for all on a host."""
    for parent in (os.environ.get("TMPDIR"), *SHARED):
        if not parent or not usable(parent):
            continue
        top = os.path.join(parent, ".holdcell")
        with contextlib.suppress(OSError):
            if ours_alone(top) and ours_alone(os.path.join(top, name)) and usable(os.path.join(top, name)):
                return os.path.join(top, name)
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
