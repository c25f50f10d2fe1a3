"""Interrupts: the cell ends, the variables stay, and no end state is a lie."""

import os
import time

import pytest

from channels import Channels
from server import SLOW
from tiers import FULL

ROUNDS = 50 if FULL else 5

# A cell that says how it ended in a variable: the reply can be held against it.
CELL = ("import time\nended = 'interrupted'\n"
        "try:\n    {mark}time.sleep({seconds})\n    ended = 'slept'\n"
        "except KeyboardInterrupt:\n    raise\n")


@pytest.mark.guest
def test_interrupt_ends_a_sleep_at_once_and_keeps_variables(shared, kernel):
    kid, took = kernel("python3"), []
    with Channels(shared, kid) as c:
        c.run("kept = 'yes'")
        for _ in range(3):
            m = c.start("import time; print('in', flush=True); time.sleep(60)")
            c.until(lambda x: x["header"]["msg_type"] == "stream")
            began = time.monotonic()
            assert shared.interrupt(kid) == 204
            run = c.finish(m)
            took.append(time.monotonic() - began)
            assert run.ename == "KeyboardInterrupt"
            assert c.run("kept").result == "'yes'"
    assert min(took) < 2 * SLOW, f"it ends at once, whatever else the machine does at times: {took}"


def test_interrupts_between_cells_change_nothing(shared, kernel):
    kid = kernel("python3")
    with Channels(shared, kid) as c:
        assert c.run("x = 1").status == "ok"
        for _ in range(3):
            assert shared.interrupt(kid) == 204
        for _ in range(3):
            assert c.run("x").result == "1"


@pytest.mark.parametrize("when", ["before", "with", "after"])
def test_an_interrupt_around_busy_never_hangs_a_run_and_its_end_is_true(shared, kernel, when):
    """Many times each: sent before the request, at the sight of busy, a little after."""
    kid = kernel("python3")
    ends = {}
    with Channels(shared, kid) as c:
        c.run("pass")
        for i in range(ROUNDS):
            if when == "before":
                assert shared.interrupt(kid) == 204
            m = c.start(CELL.format(mark="", seconds=0.4 if when == "before" else 30))
            if when != "before":
                c.until(lambda x: x["header"]["msg_type"] == "status"
                        and x["content"]["execution_state"] == "busy"
                        and x["parent_header"].get("msg_id") == m)
                if when == "after":
                    time.sleep(0.002 * (i % 10))
                assert shared.interrupt(kid) == 204
            run = c.finish(m, timeout=60)
            truth = c.run("ended if 'ended' in globals() else 'never began'")
            c.run("globals().pop('ended', None)")
            assert truth.status == "ok", "the kernel is usable after an interrupt"
            key = (run.status, run.ename, truth.result)
            ends[key] = ends.get(key, 0) + 1
            if run.status == "ok":
                assert truth.result == "'slept'", f"reported ok, but the cell was {truth.result}"
            else:
                assert run.status in ("error", "aborted")
                assert truth.result != "'slept'" or run.ename != "KeyboardInterrupt" or when == "before", key
    assert sum(ends.values()) == ROUNDS
    if when == "after":
        assert any(k[1] == "KeyboardInterrupt" for k in ends), ends


def test_a_child_process_of_the_cell_ends_with_the_interrupt(shared, kernel):
    kid = kernel("python3")
    with Channels(shared, kid) as c:
        m = c.start("import subprocess, sys\nprint('in', flush=True)\nsubprocess.run(['sleep', '61.5'])")
        c.until(lambda x: x["header"]["msg_type"] == "stream")
        time.sleep(0.3)
        assert shared.interrupt(kid) == 204
        assert c.finish(m).ename == "KeyboardInterrupt"
        left = c.run("import os\n[p for p in os.listdir('/proc') if p.isdigit() and b'61.5' in "
                     "open(f'/proc/{p}/cmdline', 'rb').read()]")
        assert left.result == "[]"
