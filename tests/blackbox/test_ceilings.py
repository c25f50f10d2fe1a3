"""What is above a ceiling is dropped with a mark that the user sees, and ends nothing else."""

import itertools
import os
import re
import subprocess

import pytest

from channels import Channels
from server import read, status_of, wait_for


@pytest.mark.parametrize("mib, words", [(70, "an output of"), pytest.param(140, "", marks=pytest.mark.full)], ids=["frame", "connection"])
def test_an_output_above_the_ceiling_leaves_a_mark_and_the_cell_ends(shared, kernel, mib, words):
    with Channels(shared, kernel("python3")) as c:
        # not by print: our kernel sends that in pieces
        run = c.run("from IPython.display import display\nprint('before', flush=True)\n"
                    f"display({{'text/plain': 'x' * ({mib} << 20)}}, raw=True)\n1 + 1", timeout=120)
        assert run.status == "ok"
        assert run.text.startswith("before\n")
        assert "[holdcell]" in run.stream("stderr") and words in run.stream("stderr")
        assert not run.of("display_data")
        assert c.run("'still here'", timeout=60).result == "'still here'"


def test_many_outputs_in_one_cell_below_the_ceiling_arrive_whole(shared, kernel):
    with Channels(shared, kernel("python3")) as c:
        run = c.run("for i in range(24): print('x' * (1 << 20), flush=True)", timeout=120)
        assert run.status == "ok"
        assert len(run.text) == 24 * ((1 << 20) + 1)


def set_open_files(pid, soft):
    """As its user: root may lack the right to do that to another's process."""
    uid, gid = (int(status_of(pid)[x].split()[0]) for x in ("Uid", "Gid"))
    subprocess.run(["prlimit", "--pid", str(pid), f"--nofile={soft}:"], user=uid, group=gid, extra_groups=[], check=True)


@pytest.mark.full
def test_outputs_come_again_though_no_descriptor_was_left_when_their_connection_broke(server_with):
    s = server_with()
    with Channels(s, s.start_kernel("python3")) as c:
        assert c.run("from IPython.display import display").status == "ok"
        gateway = s.process("gateway")
        used = {int(fd) for fd in os.listdir(f"/proc/{gateway}/fd")}
        before = re.search(r"^Max open files +(\d+)", read(f"/proc/{gateway}/limits"), re.M).group(1)
        set_open_files(gateway, next(n for n in itertools.count() if n not in used))
        cell = c.start("display({'text/plain': 'x' * (140 << 20)}, raw=True)")
        wait_for(lambda: "event=iopub_reopen error=" in s.log())
        set_open_files(gateway, before)
        assert c.finish(cell, timeout=120).status == "ok"
        assert c.run("'again'", timeout=60).result == "'again'"
