"""Rules of a kernel's WebSocket that no case of the conformance suite looks at."""

import json
import os
import signal
import struct
import threading
import time
import uuid

import pytest
import websocket

from channels import Channels, Ended
from rawhttp import Raw, upgrade
from server import DEADLINE, SLOW, wait_for


def legacy_binary(message, *buffers):
    parts = [json.dumps(message).encode(), *buffers]
    offsets, at = [], 4 * (len(parts) + 1)
    for p in parts:
        offsets.append(at)
        at += len(p)
    return struct.pack(f">{len(parts) + 1}I", len(parts), *offsets) + b"".join(parts)


def test_a_binary_message_in_a_text_frame_is_taken(shared, kernel):
    """jupyter_server's proxy forwards the browser's widget data so; it is not even UTF-8."""
    with Channels(shared, kernel("python3")) as c:
        assert c.run("got = []\n"
                     "def opened(comm, msg):\n    comm.on_msg(lambda m: got.append([bytes(b) for b in m['buffers']]))\n"
                     "get_ipython().kernel.comm_manager.register_target('t', opened)").status == "ok"
        comm = uuid.uuid4().hex
        c.send("comm_open", {"comm_id": comm, "target_name": "t", "data": {}})
        m = {"header": {"msg_id": uuid.uuid4().hex, "msg_type": "comm_msg", "session": c.sid, "username": "t",
                        "version": "5.4", "date": "2026-01-01T00:00:00.000000Z"},
             "parent_header": {}, "metadata": {}, "content": {"comm_id": comm, "data": {}}, "channel": "shell"}
        frame = legacy_binary(m, b"\xff\x00\xfe", b"")
        assert frame[0] == 0
        c.ws.send_frame(websocket.ABNF.create_frame(frame, websocket.ABNF.OPCODE_TEXT))
        assert c.run("got").result == r"[[b'\xff\x00\xfe', b'']]"


def test_a_delete_is_told_to_the_end_and_then_closed_for_good(shared):
    kid = shared.start_kernel("python3")
    c = Channels(shared, kid)
    assert c.run("0").status == "ok"
    assert shared.delete_kernel(kid) == 204
    with pytest.raises(Ended) as e:
        while True:
            c.recv()
    assert e.value.args == (1000,)
    assert "shutdown_reply" in [m["header"]["msg_type"] for m in c.seen]


def test_a_kernel_that_never_speaks_holds_up_neither_the_handshake_nor_its_end(server_with, kernel_path):
    kernel_path.add("mute", ["/bin/sleep", "600"])
    s = server_with("--kernel-path", kernel_path.path, "--kernel-info-timeout", "1")
    kid = s.start_kernel("mute")
    with Channels(s, kid) as c:
        c.send("kernel_info_request", {})
        assert s.kernel(kid)["execution_state"] == "starting"
        with pytest.raises(TimeoutError):
            c.recv(1)
        assert s.delete_kernel(kid) == 204
        with pytest.raises(Ended):
            while True:
                c.recv()


MUTE_LATER = ["sh", "-c", "test -e ~/once && exec sleep 600; : >~/once; exec {resource_dir}/scripted-kernel {connection_file}"]


@pytest.mark.full
@pytest.mark.parametrize("life", ["first", "next"])
def test_the_least_patient_client_gets_its_handshake_with_a_kernel_that_never_answers(server_with, kernel_path, life):
    """jupyter_kernel_client gives it 10 s. Without options the server makes it wait for 8 (docs/ARCHITECTURE.md)."""
    kernel_path.add_scripted("mute", ["sleep", "600"] if life == "first" else MUTE_LATER)
    s = server_with("--kernel-path", kernel_path.path)
    kid = s.start_kernel("mute")
    if life == "next":
        with Channels(s, kid) as c:
            assert c.run("result 1").result == "1"
            assert c.run("exit 3").status == "error"
    wait_for(lambda: s.kernel(kid)["execution_state"] == "starting")
    with Raw(s, timeout=DEADLINE) as c:
        asked = time.monotonic()
        c.send(upgrade(s, kid))
        assert c.answer()[0] == 101
        assert time.monotonic() - asked < 10 * SLOW
    assert s.kernel(kid)["execution_state"] == "starting", "it has not answered"
    assert s.delete_kernel(kid) == 204


def test_what_was_sent_to_a_killed_kernel_does_not_reach_the_next(shared, kernel):
    before = set(shared.kernels())
    kid = kernel("python3")
    (pid,) = set(shared.kernels()) - before
    with Channels(shared, kid) as c:
        assert c.run("0").status == "ok"
        os.kill(pid, signal.SIGSTOP)            # it takes nothing
        stale = [c.start(f"stale_{i} = 1") for i in range(20)]
        time.sleep(0.5)
        os.kill(pid, signal.SIGKILL)
        ends = [c.finish(i) for i in stale]
        assert all(r.status == "error" and "holdcell" in r.reply["metadata"] for r in ends)
        assert c.run("[n for n in dir() if n.startswith('stale')]").result == "[]"


@pytest.mark.full
def test_a_socket_opened_during_a_restart_gets_iopub(shared, kernel):
    kid = kernel("python3")
    with Channels(shared, kid) as c:
        assert c.run("0").status == "ok"
        for _ in range(3):
            t = threading.Thread(target=shared.restart, args=(kid,))
            t.start()
            time.sleep(0.05)
            with Channels(shared, kid) as other:
                run = other.run("print('heard')")
                if run.status != "ok":          # it went to the process that was just ending
                    run = other.run("print('heard')")
                assert run.text == "heard\n"
            t.join()


def test_a_message_that_a_client_cannot_take_comes_once(shared, kernel):
    """A proxy in between takes 10 MiB at most and closes; the same client comes back for the rest."""
    kid = kernel("python3")
    c = Channels(shared, kid)
    assert c.run("0").status == "ok"
    msg_id = c.start("from IPython.display import display\nimport time\n"
                     "try:\n    display({'text/plain': 'x' * (12 << 20)}, raw=True)\n    time.sleep(600)\n"
                     "except KeyboardInterrupt:\n    print('rest')")
    c.until(lambda m: m["header"]["msg_type"] == "display_data")
    c.ws.sock.close()                           # as the proxy does, without a word
    wait_for(lambda: shared.kernel(kid)["connections"] == 0)
    assert shared.request("POST", f"/api/kernels/{kid}/interrupt").status == 204    # before, it might be told to the dead
    with Channels(shared, kid, c.sid) as again:
        run = again.finish(msg_id)
        assert run.of("display_data") == [] and run.text == "rest\n" and run.status == "ok"


@pytest.mark.full
def test_cells_beyond_those_that_one_client_may_have_open_go_on_when_time_ends_the_others(shared, kernel):
    with Channels(shared, kernel("python3")) as c:
        assert c.run("k = get_ipython().kernel; tell, k._publish_status = k._publish_status, lambda *a, **kw: None")
        cells = [c.start(str(i)) for i in range(1024)]      # their ends are not told: the gateway waits for a while
        last = c.start("k._publish_status = tell")
        run = c.finish(last)
        assert run.status == "ok"
        assert {m["parent_header"]["msg_id"] for m in c.seen if m["header"]["msg_type"] == "execute_reply"} > set(cells)
        assert c.run("1 + 1").result == "2"
