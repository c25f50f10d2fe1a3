"""What the tests of files ask about the host's disks, loop devices and mounts."""

import contextlib
import glob
import os
import re
import subprocess

from server import read, wait_for


def loops_below(path):
    """Loop devices whose image lies below path, also of images without a name."""
    return [f for f in glob.glob("/sys/block/loop*/loop/backing_file") if read(f).startswith(path)]


def free_mb(path):
    s = os.statvfs(path)
    return s.f_bavail * s.f_frsize >> 20


@contextlib.contextmanager
def disk_of_our_own(place, mb):
    """A file system of so many MB below place, for who counts its free blocks: nobody else takes any. Its path."""
    image, top = os.path.join(place, "disk.img"), os.path.join(place, "disk")
    os.mkdir(top)
    with open(image, "wb") as f:
        f.truncate(mb << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, top], check=True)
    try:
        yield top
    finally:
        subprocess.run(["umount", top], check=True)
        os.unlink(image)


def mounts_of_host():
    return sorted(line.split(" ")[4] for line in read("/proc/self/mountinfo").splitlines())


def homes_on_disk(server):
    """Where this machine lets homes be; tests that need the disk skip by it."""
    return "event=homes_in_memory" not in server.log()


def no_loops(server):
    wait_for(lambda: not loops_below(server.state))


def homes(server):
    """Of the sessions that were made, in order."""
    return re.findall(r"event=session_created .*home=(\w+)", server.log())
