"""Raw ZMTP frames on a kernel's own connections: what the gateway holds of them stays bounded, whoever sends what no
kernel sends is ended and told why, and nobody else notices."""

import re

import pytest

from channels import Channels
from hogs import FRAMES, goes_on, poured
from server import BIN, read, wait_for

KERNEL, MESSAGE, SLACK = 64, 256, 150       # MiB: gateway/wire/zguard.h; what else a gateway needs meanwhile
WAITED_FOR = "a message did not end while others waited for the room that it took"
LIMITS = {"memory_mb": 1000}


@pytest.fixture(autouse=True)
def not_sanitized():
    with open(BIN, "rb") as f:
        if b"__asan_init" in f.read():
            pytest.skip("what a sanitizer keeps of freed memory is not bounded by us")


def status(s, key):
    """In MiB."""
    return int(re.search(rf"^{key}:\s+(\d+) kB", read(f"/proc/{s.process('gateway')}/status"), re.M).group(1)) >> 10


def forget_peak(s):
    with open(f"/proc/{s.process('gateway')}/clear_refs", "w") as f:
        f.write("5")
    return status(s, "VmRSS")


def all_kernels_may_hold(s):
    """MiB: a quarter of the gateway's memory."""
    soft = re.search(r"^Max data size +(\d+)", read(f"/proc/{s.process('gateway')}/limits"), re.M).group(1)
    return int(soft) >> 22


def await_end(c, cell, *told):
    """Waits until a cell is ended for what it sends, with one of these words; or has had its time."""
    if told == (None,):
        goes_on(c, cell)
        return
    run = c.finish(cell, timeout=120)
    assert run.ename == "KernelDied"
    assert "[holdcell] the kernel died: it broke the message protocol: " in run.stream("stderr")
    assert any(words in run.stream("stderr") for words in told), run.stream("stderr")


# The battery has more of them in the quick tier, too.
QUICK = ["announced-and-never-sent"]


@pytest.mark.parametrize("name", [pytest.param(n, id=n, marks=() if n in QUICK else pytest.mark.full) for n in FRAMES])
def test_frames_that_no_kernel_sends_cost_their_own_session_alone(shared, kernel, name):
    told = FRAMES[name][1]
    gateway, hog = shared.process("gateway"), kernel("python3", limits=LIMITS)
    with Channels(shared, kernel("python3")) as near, Channels(shared, hog) as c:
        assert near.run("kept = 'kept'").status == "ok" and c.run("0").status == "ok"
        before = forget_peak(shared)
        cell = c.start("0")
        assert c.finish(cell).status == "ok"
        cell = c.start(FRAMES[name][0])
        if told is None:
            wait_for(lambda: poured(shared))
        await_end(c, cell, told)
        for _ in range(5):
            assert near.run("kept").result == "'kept'"
            assert shared.request("GET", "/api/kernels").status == 200
        assert status(shared, "VmHWM") < before + KERNEL + MESSAGE + SLACK
        assert shared.process("gateway") == gateway, "it is still the same"
        if told is not None:                # it starts again, and is as good as any
            wait_for(lambda: shared.wait_state(hog, "idle"))
            assert c.run("'again'").result == "'again'"
        assert shared.delete_kernel(hog) == 204
        assert near.run("kept").result == "'kept'"


@pytest.mark.full
@pytest.mark.parametrize("name", ["large-parts", "endless-large-messages"])
def test_many_of_them_at_once_have_no_more_than_all_may_have(shared, kernel, name):
    gateway, told = shared.process("gateway"), FRAMES[name][1]
    many = [Channels(shared, kernel("python3", limits=LIMITS)) for _ in range(6)]
    with Channels(shared, kernel("python3")) as near:
        assert near.run("kept = 'kept'").status == "ok"
        for c in many:
            assert c.run("0").status == "ok"
        before = forget_peak(shared)
        cells = [c.start(FRAMES[name][0]) for c in many]
        if told is None:
            wait_for(lambda: len(poured(shared)) == len(many))
        for c, cell in zip(many, cells):
            await_end(c, cell, told, *([WAITED_FOR] if told else []))
            assert near.run("kept").result == "'kept'"
        # More than each kernel has for itself: others wait for it, and get it.
        assert len(near.run("print('x' * (30 << 20))", timeout=120).text) == (30 << 20) + 1
        assert status(shared, "VmHWM") < before + all_kernels_may_hold(shared) + MESSAGE + 2 * SLACK
        assert shared.process("gateway") == gateway
        for c in many:
            c.close()


@pytest.mark.parametrize("mib", [30, pytest.param(60, marks=pytest.mark.full)])
def test_what_a_kernel_may_send_passes_the_guard_whole(shared, kernel, mib):
    kid = kernel("python3")
    with Channels(shared, kid) as c:
        run = c.run(f"from IPython.display import display\ndisplay({{'text/plain': 'x' * ({mib} << 20)}}, raw=True)",
                    timeout=120)
        assert run.status == "ok"
        assert len(run.of("display_data")[0]["content"]["data"]["text/plain"]) == mib << 20


def test_nothing_goes_out_of_band_to_the_gateway(shared, kernel):
    """A byte that stands elsewhere in what is looked at than in what is read would be counted wrong."""
    kid = kernel("python3")
    with Channels(shared, kid) as c:
        run = c.run("import errno, os, socket\nanswers = set()\nfor fd in map(int, os.listdir('/proc/self/fd')):\n"
                    "    try: s = socket.socket(fileno=os.dup(fd))\n    except OSError: continue\n"
                    "    for send in (lambda: s.send(b'x', socket.MSG_OOB), lambda: s.sendmsg([b'x'], [], socket.MSG_OOB)):\n"
                    "        try: answers.add(send())\n        except OSError as e: answers.add(errno.errorcode[e.errno])\n"
                    "answers")
        assert run.result == "{'ENOTSUP'}", run.messages
