"""Many clients at one kernel at the same time: every request ends, with an answer that fits."""

import concurrent.futures
import http.client
import os
import random
import re
import signal
import threading
import time
from collections import Counter

import pytest

from channels import Channels
from server import wait_for
from test_metrics import Metrics

ALLOWED = {
    "restart": {200, 404}, "interrupt": {204, 404}, "delete": {204, 404}, "get": {200, 404},
    "create": {201, 403}, "attach": {101, 404},
}


def act(s, op, kid):
    if op == "restart":
        return s.restart(kid).status
    if op == "interrupt":
        return s.interrupt(kid)
    if op == "delete":
        return s.delete_kernel(kid)
    if op == "create":
        return s.request("POST", "/api/kernels", {"name": "python3"}).status
    if op == "get":
        return s.request("GET", f"/api/kernels/{kid}").status
    try:
        c = Channels(s, kid)
    except Exception as e:          # the class differs between the client's versions
        return getattr(e, "status_code", str(e))
    c.start("while True: pass")
    c.ws.sock.close()
    return 101


def storm(s, kids, seed, seen):
    rng = random.Random(seed)
    for i in range(10):
        op = rng.choice(["restart", "restart", "interrupt", "attach", "get", "create"]
                        + (["delete"] * 2 if i > 5 else []))
        seen[op, act(s, op, rng.choice(kids))] += 1


@pytest.mark.full
def test_requests_of_many_clients_for_the_same_kernels_all_end_with_an_answer_that_fits(server_with):
    s = server_with("--max-kernels", "4")
    before = s.counters()
    kids = [s.start_kernel("python3") for _ in range(4)]
    seen = Counter()
    clients = [threading.Thread(target=storm, args=(s, kids, i, seen), daemon=True) for i in range(8)]
    for t in clients:
        t.start()
    for t in clients:
        t.join(240)
    assert not any(t.is_alive() for t in clients), dict(seen)
    assert not [k for k in seen if k[1] not in ALLOWED[k[0]]], dict(seen)
    assert seen["create", 403] + seen["create", 201], "more than there may be was asked for"
    for k in s.request("GET", "/api/kernels").json():
        assert s.delete_kernel(k["id"]) == 204
    wait_for(lambda: s.counters()["processes"] == before["processes"])
    wait_for(lambda: s.counters()["cgroups"] == before["cgroups"])
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        assert c.run("1 + 1").result == "2"


def come_and_go(s, until, seen):
    while not until.is_set():
        try:
            r = s.request("POST", "/api/kernels", {"name": "python3"})
            seen[r.status] += 1
            if r.status == 201:
                s.delete_kernel(r.json()["id"])
        except (OSError, http.client.HTTPException):    # the gateway goes with its launcher
            seen["down"] += 1
            time.sleep(0.1)


@pytest.mark.full
def test_sessions_come_and_go_in_two_instances_while_one_of_them_loses_its_launcher(server_with):
    a, b = server_with(), server_with()
    before = b.counters()
    until, seen = threading.Event(), {a: Counter(), b: Counter()}
    clients = [threading.Thread(target=come_and_go, args=(s, until, seen[s]), daemon=True) for s in (a, b, a, b)]
    for t in clients:
        t.start()
    for i in range(3):
        made = seen[a][201], seen[b][201]
        wait_for(lambda: seen[a][201] >= made[0] + 4 and seen[b][201] >= made[1] + 4)
        old = a.process("launcher")
        os.kill(old, signal.SIGKILL)
        a.wait_next("launcher", old)
    made = seen[a][201]
    wait_for(lambda: seen[a][201] >= made + 4)
    until.set()
    for t in clients:
        t.join(120)
    assert set(seen[b]) == {201}, (seen, b.log()[-2000:])
    for s in (a, b):
        assert "make cgroup" not in s.log() and "sweep" not in s.log(), s.log()[-2000:]
    wait_for(lambda: b.counters()["cgroups"] == before["cgroups"])


def test_requests_for_kernels_at_once_never_get_more_than_there_may_be(server_with):
    s = server_with("--max-kernels", "2")
    with concurrent.futures.ThreadPoolExecutor(8) as clients:
        got = list(clients.map(lambda _: s.request("POST", "/api/kernels", {"name": "python3"}), range(8)))
    assert sorted(r.status for r in got) == [201] * 2 + [403] * 6
    for r in got:
        assert r.status == 201 or re.fullmatch(r"Resource Limit: \d kernels are running, the limit is 2", r.json()["message"])
    mine = {r.json()["id"] for r in got if r.status == 201}
    for kid in mine:
        with Channels(s, kid) as c:
            assert c.run("1 + 1").result == "2"
    assert {k["id"] for k in s.request("GET", "/api/kernels").json()} == mine and len(s.kernels()) == 2
    now = Metrics(s)
    assert sum(now.all("kernel_starts_total").values()) == 2, "nothing was started for who was refused"
    assert now("sessions") == 2
    for kid in mine:
        assert s.delete_kernel(kid) == 204
    s.start_kernel("python3")
