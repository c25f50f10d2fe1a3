"""A kernel that says nothing at all of a request, beside clients that are full up or away."""

import json

from channels import Channels
from server import wait_for

OPEN_MAX = 1024     # requests of one client without an answer: QUERIES_SEAT_MAX


def sent_to_shell(server):
    for line in server.request("GET", "/metrics").body.decode().splitlines():
        if line.startswith("holdcell_kernel_messages_total{") and 'channel="shell"' in line and 'direction="to' in line:
            return float(line.split()[-1])
    return 0


def test_an_ignored_request_ends_before_what_waited_for_its_place_is_sent(server_with, kernel_path):
    s = server_with("--kernel-path", kernel_path.add_scripted().path)
    kid = s.start_kernel("scripted")
    with Channels(s, kid) as c:
        assert c.run("print up").text == "up\n"
        before = sent_to_shell(s)
        ignored = c.start("ignore")
        first = c.start("input go", allow_stdin=True)
        ask = c.until(lambda m: m["header"]["msg_type"] == "input_request")
        others = [c.start("print x") for _ in range(OPEN_MAX + 1)]      # three more than may be open
        wait_for(lambda: sent_to_shell(s) - before >= OPEN_MAX)
        c.send("input_reply", {"value": "went"}, "stdin", ask["header"])
        replies, idle, wanted = {}, set(), {ignored, first, *others}
        while len(replies) < len(wanted) or not wanted <= idle:
            m = c.recv()
            parent = (m.get("parent_header") or {}).get("msg_id")
            if m["header"]["msg_type"] == "execute_reply":
                assert parent not in replies
                replies[parent] = m["content"]
            elif m["header"]["msg_type"] == "status" and m["content"]["execution_state"] == "idle":
                idle.add(parent)
        assert replies[ignored]["ename"] == "RunLost" and "ignored" in replies[ignored]["evalue"]
        assert all(replies[r]["status"] == "ok" for r in wanted - {ignored})
        assert c.run("print still").text == "still\n"


def test_a_client_that_went_is_forgotten_once_its_last_reply_has_come(server_with, kernel_path):
    """It has no session_id, so nobody comes back for its place; its idle came before its reply."""
    s = server_with("--kernel-path", kernel_path.add_scripted().path)
    kid = s.start_kernel("scripted")
    with Channels(s, kid) as stays:
        assert stays.run("print up").text == "up\n"
        before = sent_to_shell(s)
        goes = Channels(s, kid, nameless=True)
        goes.start("ignore")
        goes.start("sleep 2000\nearly 300", allow_stdin=True)
        wait_for(lambda: sent_to_shell(s) - before >= 2)
        goes.close()
        wait_for(lambda: json.loads(s.request("GET", f"/api/kernels/{kid}").body)["connections"] == 1)
        assert stays.run("print after").text == "after\n"
        assert s.proc.poll() is None
