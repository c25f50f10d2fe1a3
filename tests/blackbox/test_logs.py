"""What the log says, in lines that programs read."""

import json
import re

import pytest

from channels import Channels
from rawhttp import Raw, frame, request, upgrade
from server import wait_for, whole_lines

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


def objects(server):
    """Every line of the log but those for people at the start; each must be one JSON object."""
    out = []
    for line in whole_lines(server.log()):
        if line.startswith(("holdcell serving on ", "token of this run")):
            continue
        out.append(json.loads(line, object_pairs_hook=no_duplicates))
    return out


def no_duplicates(pairs):
    keys = [k for k, _ in pairs]
    assert len(keys) == len(set(keys)), keys
    return dict(pairs)


def events(server, name, **fields):
    return [o for o in objects(server) if o["event"] == name and all(o.get(k) == v for k, v in fields.items())]


@pytest.fixture
def logged(server_with):
    return server_with("--log-format", "json", "--log-level", "debug", "--access-log", "info")


def test_each_process_writes_json_lines_with_time_level_and_typed_fields(logged):
    kid = logged.start_kernel("python3")
    with Channels(logged, kid) as c:
        assert c.run("1/0").status == "error"
    logged.delete_kernel(kid)
    lines = objects(logged)
    assert {o["process"] for o in lines} == {"supervisor", "launcher", "gateway"}
    for o in lines:
        assert list(o)[:4] == ["ts", "level", "process", "event"], o
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", o["ts"]), o
        assert o["level"] in ("debug", "info", "warn", "error")
    started = events(logged, "kernel_started", process="gateway")[0]
    assert started["kernel"] == kid and started["generation"] == 1
    assert isinstance(events(logged, "gateway_started")[0]["pid"], int)


def test_a_request_has_one_line_with_its_route_and_times(logged):
    body = b'{"name": "no such kernel at all"}'
    r = logged.request("POST", "/api/kernels?x=1", body, headers={"X-Request-Id": "job-17:a"})
    assert r.status >= 400 and r.headers["X-Request-Id"] == "job-17:a"
    line, = events(logged, "request", request_id="job-17:a")
    assert line["method"] == "POST" and line["route"] == "/api/kernels" and line["path"] == "/api/kernels"
    assert line["status"] == r.status and line["bytes"] == len(r.body) and line["principal"] == "default"
    assert 0 <= line["duration_us"] < 60e6 and line["peer"].startswith("127.0.0.1:")
    other = logged.request("GET", "/api/kernels/" + "0" * 8 + "-0000-4000-8000-" + "0" * 12)
    line, = events(logged, "request", request_id=other.headers["X-Request-Id"])
    assert line["route"] == "/api/kernels/{id}" and line["status"] == 404


@pytest.mark.parametrize("given", ["", "a b", 'a"b', "x" * 129, "é", "a,b", "a;b", "a\\b"])
def test_a_request_id_that_is_not_sane_is_replaced(logged, given):
    r = logged.request("GET", "/api", headers={"X-Request-Id": given.encode("utf-8")})
    assert re.fullmatch("[0-9a-f]{32}", r.headers["X-Request-Id"])


def test_two_request_ids_are_none(logged):
    with Raw(logged) as c:
        c.send(request(logged, "GET", "/api", "X-Request-Id: one\r\nX-Request-Id: two\r\n"))
        assert re.fullmatch("[0-9a-f]{32}", c.answer()[1]["x-request-id"])


def test_a_trace_goes_through_request_start_socket_and_runs(logged):
    kid = logged.request("POST", "/api/kernels", {"name": "python3"}, headers={"traceparent": PARENT}).json()["id"]
    line, = events(logged, "request", route="/api/kernels", method="POST")
    assert line["trace_id"] == TRACE and line["parent_span_id"] == "00f067aa0ba902b7"
    assert re.fullmatch("[0-9a-f]{16}", line["span_id"]) and line["span_id"] != line["parent_span_id"]
    started, = events(logged, "kernel_started", process="gateway")
    assert started["trace_id"] == TRACE and started["request_id"] == line["request_id"]
    with Channels(logged, kid, header=[f"traceparent: {PARENT}", "X-Request-Id: socket-1"]) as c:
        assert c.run("1").status == "ok"
        run, = wait_for(lambda: events(logged, "run_ended", state="ok"))
    assert run["trace_id"] == TRACE and run["request_id"] == "socket-1" and run["kernel"] == kid
    opened, = events(logged, "websocket_opened")
    assert opened["request_id"] == "socket-1" and run["span_id"] != opened["span_id"]
    assert run["parent_span_id"] == opened["span_id"]
    assert logged.delete_kernel(kid) == 204


@pytest.mark.parametrize("value", ["00-" + "0" * 32 + "-00f067aa0ba902b7-01", "00-" + TRACE.upper() + "-00f067aa0ba902b7-01",
                                   "ff" + PARENT[2:], PARENT + "-x", PARENT + ", " + PARENT])
def test_a_trace_that_is_not_valid_is_ignored(logged, value):
    r = logged.request("GET", "/api", headers={"traceparent": value})
    assert r.status == 200
    line, = events(logged, "request", request_id=r.headers["X-Request-Id"])
    assert "trace_id" not in line


def test_a_socket_has_a_line_at_its_begin_and_end(logged):
    kid = logged.start_kernel("python3")
    with Channels(logged, kid) as c:
        assert c.run("1").status == "ok"
        c.ws.close(status=1000)
    closed, = wait_for(lambda: events(logged, "websocket_closed"))
    assert closed["code"] == 1000 and closed["by"] == "client" and closed["path"] == f"/api/kernels/{kid}/channels"
    assert closed["messages_in"] == 1 and closed["messages_out"] >= 4
    assert closed["bytes_in"] > 100 and closed["bytes_out"] > 400 and closed["duration_us"] > 0
    with Raw(logged) as c:
        c.send(upgrade(logged, kid))
        assert c.answer()[0] == 101
        c.reset()
    wait_for(lambda: events(logged, "websocket_closed", code=1006, by="client"))
    with Raw(logged) as c:
        c.send(upgrade(logged, kid) + frame(b"x", first=0x83))
        c.ended()
    wait_for(lambda: events(logged, "websocket_closed", code=1002, by="server"))


def test_no_client_writes_a_line_or_a_key_of_its_own(logged):
    bad = ['/x%0a{"event":"forged"}', "/%22,%22level%22:%22forged", "/a%00b", "/%e2%80%a8", "/\\\\", "/%1b[31m"]
    for path in bad:
        with Raw(logged) as c:
            c.send(request(logged, "GET", path.replace(" ", "%20"), 'X: ","event":"forged\r\n'))
            assert c.answer()[0] in (400, 404)
    for name in ['forged" level="error', "forged\nts=1", "\u2028forged", 'forged","level":"x']:
        assert logged.request("POST", "/api/kernels", {"name": name}).status >= 400
        assert logged.request("POST", "/api/kernels", {"kernel_id": name}).status == 400
    kid = logged.start_kernel("python3")
    with Channels(logged, kid) as c:
        for kind in ['forged" level="error', "forged\nevent=forged"]:
            c.send(kind, {})
        c.send("execute_request", {"code": "1", "stop_on_error": False, "forged\n": '","event":"forged'})
        assert c.run("import os; os.write(2, b'{\"event\":\"forged\"}\\n'); os._exit(7)").status == "error"
    wait_for(lambda: events(logged, "kernel_died"))
    for o in objects(logged):
        assert o["event"] != "forged" and o["level"] != "forged" and not any("forged" in k for k in o)


def test_the_token_is_in_no_line(server_with):
    secret = "s3cret-t0ken-in-no-log"
    s = server_with("--log-format", "json", "--log-level", "debug", "--access-log", "info", token=secret)
    kid = s.start_kernel("python3")
    for header in ({}, {"Authorization": f"Bearer {secret}"}, {"Authorization": f"token {secret}"}):
        assert s.request("GET", f"/api/kernels/{kid}?token={secret}", headers=header, token=False).status == 200
    assert s.request("GET", f"/api/kernels?token={secret}x", token=False).status == 401
    s.request("GET", f"/nowhere?token={secret}", token=False)
    with Raw(s) as c:
        c.send(f"GET /api?token={secret} HTTP/1.1\r\nHost: a\r\nHost: b\r\nCookie: {secret}\r\n\r\n".encode())
        c.answer()
    with Channels(s, kid) as c:
        assert c.run("1").status == "ok"
    assert s.stop() == 0
    assert secret not in s.log()
    assert len(events(s, "request", status=401)) == 1


def test_text_is_one_line_an_event_too(server_with):
    s = server_with("--log-level", "debug")
    assert s.request("GET", "/x%0aevent=forged%22").status == 404
    lines = [line for line in s.log().splitlines() if not line.startswith("holdcell serving")]
    assert all(re.match(r"ts=\S+Z level=\w+ process=\w+ event=\S+", line) for line in lines), lines
    assert not any(line.startswith("event=forged") for line in lines)


@pytest.mark.full
def test_levels_are_obeyed(server_with):
    s = server_with("--log-format", "json", "--log-level", "error")
    kid = s.start_kernel("python3")
    assert s.delete_kernel(kid) == 204
    assert {o["level"] for o in objects(s)} <= {"error"}
    s = server_with("--log-format", "json", "--access-log", "off")
    kid = s.start_kernel("python3")
    assert events(s, "kernel_started") and not events(s, "request")


def test_by_default_only_what_changes_or_fails_is_told(server_with):
    s = server_with("--log-format", "json")
    kid = s.start_kernel("python3")
    assert s.kernel(kid)
    assert s.request("GET", "/api/kernels", token=False).status == 401
    assert s.delete_kernel(kid) == 204
    assert [(o["method"], o["status"]) for o in events(s, "request")] == [("POST", 201), ("GET", 401), ("DELETE", 204)]
