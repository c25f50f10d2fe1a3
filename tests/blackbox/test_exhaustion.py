"""Cells that use up everything there is: each ends as docs/STATES.md says, its neighbour hardly notices, nothing is left."""

import contextlib

import pytest

from hogs import CASES, ENDLESS, at_its_worst, measure, medians
from server import SLOW, Server, wait_for

QUICK = ("oom-in-a-child", "disk-full")


@pytest.fixture(scope="module")
def servers():
    """Where the hogs and their neighbour are, and another one: what it needs then is the machine's doing."""
    two = []
    try:
        for options in (("--cpus", "1", "--max-inodes", "200000"), ()):
            two.append(Server(*options).start())
        yield two
    finally:
        for s in two:
            s.close()


@contextlib.contextmanager
def nothing_is_left_by(s):
    before = s.counters()
    yield

    def back():
        """processes, descriptors, cgroups, mounts and files as before"""
        now = s.counters()
        return all(now[k] <= before[k] + (2 if k.endswith("_fds") else 0) for k in before)
    try:
        wait_for(back)
    except AssertionError:
        raise AssertionError(f"before {before}\nnow    {s.counters()}") from None


@pytest.mark.parametrize("name", [
    pytest.param(n, marks=[] if n in QUICK else [pytest.mark.full]) for n in CASES
    if not n.startswith("frames-")])        # these are test_frames.py's, and bench/neighbours.py's
def test_whoever_uses_up_everything_ends_as_it_is_said_and_harms_nobody(servers, name, capsys):
    case, s = CASES[name], servers[0]
    case.live(s)                                        # what is made once is made now
    with nothing_is_left_by(s):
        harms_nobody(case, servers, name, capsys)


def harms_nobody(case, servers, name, capsys):
    took, samples = [], ([], [], [], [], [])
    for _ in range(4):                                  # a machine that others use needs more of them
        times, more = measure(case, servers)
        took += times
        for all_, some in zip(samples, more):
            all_ += some
        quiet, beside, elsewhere, status, status_elsewhere = medians(samples)
        ended, deleted = (max(t) for t in zip(*took))
        with capsys.disabled():
            print(f"\n{name}: ended in {ended:.2f} s (stated: {case.seconds} s, {len(took)} times), DELETE in {deleted:.2f} s; "
                  f"a cell of the neighbour {beside:.1f} ms, {beside / quiet:.1f} times its quiet {quiet:.1f} ms, "
                  f"in another instance {elsewhere:.1f} ms; GET {status:.1f} ms, there {status_elsewhere:.1f} ms")
        if beside < 3 * min(quiet, elsewhere) and status < 3 * status_elsewhere:
            break
    assert beside < 3 * elsewhere, "the neighbour waits for the hog, and not for the machine alone"
    assert beside < 3 * quiet or elsewhere > 1.5 * quiet, "nor on a machine that has nothing else to do"
    assert status < 3 * status_elsewhere, "and so does who asks for the state of things"
    # The stated time is that of a quiet machine: one of its lives will have had that, and none takes several times as long.
    assert min(t for t, _ in took) < case.seconds * SLOW and ended < case.seconds * SLOW * 4
    assert deleted < 10 * SLOW


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n == "everything-stopped" else pytest.mark.full) for n in ENDLESS])
def test_a_session_at_its_worst_is_seen_interrupted_and_deleted_as_it_is_said(servers, name, capsys):
    s = servers[0]
    at_its_worst(s, name)
    with nothing_is_left_by(s):
        seen, interrupted, deleted = at_its_worst(s, name)
        with capsys.disabled():
            print(f"\n{name}: GET {1000 * seen:.1f} ms, interrupt {1000 * interrupted:.1f} ms, DELETE {deleted:.2f} s")
    # Milliseconds on a quiet machine. DELETE: the drain timeout of 5 s for who heeds nothing, and the end of what is there.
    assert seen < 5 * SLOW and interrupted < 5 * SLOW and deleted < 15 * SLOW
