"""The connection to a kernel's output breaks: told once, and not at all when the kernel ends."""

import pytest

from channels import Channels

LOST = "[holdcell] the connection to the kernel's output broke: some of it may be lost"
# What a kernel does that closes its sockets and lives on for a while.
LINGERS = "import atexit, time; atexit.register(time.sleep, 3)"
# The kernel cuts off who listens to its output, and goes on.
CUT = """
import os, socket
for fd in map(int, os.listdir("/proc/self/fd")):
    try:
        s = socket.socket(fileno=os.dup(fd))
    except OSError:
        continue
    with s:
        # the fourth of its five sockets is iopub; a connection to it, not the socket that listens
        if (s.family == socket.AF_UNIX and s.getsockname().endswith("-4")
                and not s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)):
            s.shutdown(socket.SHUT_RDWR)
            cut = True
"""


@pytest.mark.full
def test_a_kernel_that_takes_time_to_end_says_nothing_of_a_lost_connection(shared, kernel):
    kid = kernel("python3")
    with Channels(shared, kid) as c:
        assert c.run(LINGERS).status == "ok"
        c.run("exit()")
        run = c.run("'after'")
        while run.status == "ok":           # taken before it closed its sockets
            run = c.run("'after'")
        assert run.status == "error" and "the kernel died: exited with code 0" in run.stream("stderr"), run.reply
        assert LOST not in run.stream("stderr")


@pytest.mark.full
def test_a_kernel_that_takes_time_to_end_for_a_restart_has_lost_no_connection(server_with, kernel_path):
    """As bash_kernel does: asked to end, it closes its sockets, and its process stays until SIGTERM."""
    kernel_path.add_scripted("lingers", ["sh", "-c", "trap '' INT; {resource_dir}/scripted-kernel {connection_file}; sleep 1000"])
    s = server_with("--kernel-path", kernel_path.path)
    kid = s.start_kernel("lingers")
    with Channels(s, kid) as c:
        assert c.run("result 1").status == "ok"
        assert s.restart(kid).status == 200
        assert c.run("result 2").result == "2"
    assert "event=iopub_lost" not in s.log()


def test_a_connection_that_breaks_in_a_cell_is_told_in_that_cell_once(shared, kernel):
    kid = kernel("python3")
    with Channels(shared, kid) as c:
        run = c.run(CUT + "import time\ntime.sleep(4)\nprint('end')")
        assert run.status == "ok" and run.stream("stderr").count(LOST) == 1, run.messages
        assert c.run("cut").result == "True"
