"""A kernel that sends without end harms nobody but its own session."""

import resource

import pytest

from channels import Channels
from server import read, wait_for

pytestmark = pytest.mark.usefixtures("not_sanitized")
PUBLISHER = "import zmq\npub = get_ipython().kernel.iopub_thread.socket\n"
ENDLESS = PUBLISHER + """
part = bytes(4 << 20)
for i in range(%d):
    pub.send(part, zmq.SNDMORE, copy=False)
"""


def data_limit(s):
    line = [ln for ln in read(f"/proc/{s.process('gateway')}/limits").splitlines() if "data size" in ln]
    return line[0].split()[3:5]


def test_the_memory_of_the_gateway_has_a_ceiling(shared):
    soft, hard = data_limit(shared)
    assert soft == hard and 1 << 30 <= int(hard) <= 4 << 30


LIMIT = 400 << 20           # the gateway's own would take gigabytes to reach


def test_a_message_that_never_ends_is_paid_for_by_its_own_session(server_with):
    s = server_with(prepare=lambda: resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT)))
    assert data_limit(s) == [str(LIMIT)] * 2
    hog, other = s.start_kernel("python3"), s.start_kernel("python3")
    with Channels(s, other) as c:
        assert c.run("kept = 'kept'").status == "ok"
    with Channels(s, hog) as c:
        c.start(ENDLESS % 300 + "pub.send(b'')")
        c.ws.sock.close()

    def works():
        """the other session's kernel, with its variable"""
        try:
            with Channels(s, other) as c:
                return c.run("kept").result == "'kept'"
        except Exception:           # the gateway may be on its way up again
            return False

    for _ in range(10):
        wait_for(works)
    assert s.delete_kernel(hog) == 204
    assert s.kernel(other)["id"] == other
