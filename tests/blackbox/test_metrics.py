"""What /metrics counts, read by Prometheus' own parser after things that are known to have happened."""

import os
import re
import signal

import pytest
from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics_parser

from channels import Channels
from rawhttp import Raw, request, upgrade
from server import ROOT, wait_for


class Metrics:
    """One reading: families by name, values by name and labels."""

    def __init__(self, server, path="/metrics"):
        r = server.request("GET", path)
        assert r.status == 200 and r.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8", r
        self.text = r.body.decode()
        self.families = {f.name: f for f in parser.text_string_to_metric_families(self.text)}
        self.samples = {(s.name, frozenset(s.labels.items())): s.value
                        for f in self.families.values() for s in f.samples}

    def __call__(self, name, **labels):
        return self.samples.get((f"holdcell_{name}", frozenset(labels.items())), 0)

    def all(self, name):
        return {tuple(sorted(k[1])): v for k, v in self.samples.items() if k[0] == f"holdcell_{name}" and v}


@pytest.fixture(scope="module")
def own():
    from server import Server
    s = Server().start()
    yield s
    s.close()


def test_every_family_has_help_type_and_a_name_by_the_rules(own):
    m = Metrics(own)
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", m.text, re.M))
    assert len(types) == len(m.families) > 30
    for name, kind in types.items():
        text = re.search(f"^# HELP {name} (.+)$", m.text, re.M)
        assert text and text[1].endswith("."), name
        assert re.fullmatch(r"(holdcell|process)(_[a-z]+)+", name)
        assert (kind == "counter") == name.endswith("_total"), name
        # base units, and never a unit before them
        assert not re.search(r"_(ms|us|millis\w*|micros\w*|minutes|kib|mib|kb|mb)(_|$)", name), name
        assert kind != "histogram" or name.endswith("_seconds"), name
    assert m.text.endswith("\n") and "\n\n" not in m.text


def test_the_other_format_is_read_by_its_own_parser(own):
    r = own.request("GET", "/metrics", headers={"Accept": "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3"})
    assert r.headers["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    found = {f.name: f.type for f in openmetrics_parser.text_string_to_metric_families(r.body.decode())}
    assert found["holdcell_runs"] == "counter" and found["holdcell_run_duration_seconds"] == "histogram"
    assert len(found) == len(Metrics(own).families)


def test_the_page_in_the_docs_lists_the_table(own):
    with open(os.path.join(ROOT, "docs", "OPERATING.md"), encoding="utf-8") as f:
        rows = re.findall(r"^\| `((?:holdcell|process)_\w+)`(?:, labels `([a-z`, ]+)`)? \|", f.read(), re.M)
    told = {name: set(re.findall("[a-z]+", labels)) for name, labels in rows}
    m = Metrics(own)
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", m.text, re.M))
    assert set(told) == set(types)
    for f in m.families.values():
        name = f.name + ("_total" if f.type == "counter" else "")
        for s in f.samples:
            assert set(s.labels) - {"le"} == told[name], name


def test_a_scripted_scenario_has_exactly_these_numbers(server_with):
    s = server_with()
    before = Metrics(s)
    kid, other = s.start_kernel("python3"), s.start_kernel("python3")
    assert s.request("POST", "/api/kernels", {"name": "no-such-spec"}).status == 500
    assert s.request("GET", "/api/kernels", token=False).status == 401
    assert s.request("GET", "/api/kernels?token=wrong", token=False).status == 401
    assert s.request("BREW", "/api/kernels").status == 405
    with Channels(s, kid) as c:
        assert [c.run(code).status for code in ("1", "2", "3", "1/0")] == ["ok", "ok", "ok", "error"]
        c.ws.send("this is no message")
        msg = c.start("import time; time.sleep(1000)")
        c.until(lambda m: m["header"]["msg_type"] == "execute_input" and m["parent_header"]["msg_id"] == msg)
        assert s.interrupt(kid) == 204
        assert c.finish(msg).status == "error"
        assert c.run("import os; os.kill(os.getpid(), 9)").status == "error"
        during = Metrics(s)
        assert during("websocket_connections") == 1
    s.wait_state(kid, "idle")
    assert s.restart(other).status == 200
    s.wait_state(other, "idle")
    now = wait_for(lambda: m if (m := Metrics(s))("websocket_connections") == 0 else None)

    assert now("sessions") == 2 and now("kernels", state="idle") == 2 and now("kernels", state="dead") == 0
    assert now("kernel_starts_total", outcome="ok") == 4 and now("kernel_starts_total", outcome="failed") == 0
    assert now("kernel_start_duration_seconds_count") == 4 and now("kernel_start_duration_seconds_sum") > 0
    assert now.all("kernel_deaths_total") == {(("reason", "signal"),): 1}
    assert now.all("kernel_restarts_total") == {(("cause", "automatic"),): 1, (("cause", "requested"),): 1}
    assert {dict(k)["state"]: v for k, v in now.all("runs_total").items()} == {
        "ok": 3, "error": 1, "interrupted": 1, "killed": 1}
    assert now("run_duration_seconds_count") == 6 and now("runs_open") == 0
    assert now("kernel_messages_total", channel="shell", direction="to_kernel") == 6
    assert now("kernel_messages_total", channel="shell", direction="from_kernel") == 5     # the killed one gave none
    assert now("client_messages_total", channel="shell", direction="from_client") == 6
    assert now("client_messages_total", channel="shell", direction="to_client") == 6
    assert now("client_messages_total", channel="iopub", direction="to_client") >= 6 * 3
    for where in ("kernel", "client"):
        assert now(f"{where}_message_bytes_total", channel="shell", direction=f"to_{where}") > 600
    assert now.all("messages_dropped_total") == {(("reason", "client_malformed"),): 1}
    assert now("websocket_connections_opened_total") == 1 and now("clients_lagged_total") == 0
    assert now.all("login_failures_total") == {(("reason", "no_token"),): 1, (("reason", "wrong_token"),): 1}

    def requests(method, route, status):
        got = {"method": method, "route": route, "status": status}
        return now("http_requests_total", **got) - before("http_requests_total", **got)
    assert requests("POST", "/api/kernels", "2xx") == 2 and requests("POST", "/api/kernels", "5xx") == 1
    assert requests("GET", "/api/kernels", "4xx") == 2 and requests("other", "/api/kernels", "4xx") == 1
    assert requests("GET", "/api/kernels/{id}/channels", "1xx") == 1
    assert requests("POST", "/api/kernels/{id}/interrupt", "2xx") == 1
    assert now("http_request_duration_seconds_count", route="/api/kernels/{id}/restart") == 1
    assert now("launcher_request_duration_seconds_count", verb="create") == 2
    assert now("launcher_request_duration_seconds_count", verb="start_kernel") == 4
    assert now("event_log_memory_bytes") > 0 and now("gateway_restarts_total") == 0
    assert now("ready") == 1
    gateway = s.process("gateway")

    def counted():
        """as many open descriptors as the host sees, and the one by which it was asked; some come and go with connections"""
        return Metrics(s).samples[("process_open_fds", frozenset())] == len(os.listdir(f"/proc/{gateway}/fd")) + 1
    wait_for(counted)
    assert now.samples[("process_resident_memory_bytes", frozenset())] > 1e6


@pytest.mark.full
def test_deaths_have_their_reasons(server_with):
    s = server_with("--memory-mb", "256", "--disk-mb", "32", "--tmp-mb", "32")
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        assert c.run("x = bytearray(1 << 30)").status == "error"
        s.wait_state(kid, "idle")
        assert c.run("import os; os._exit(3)").status == "error"
        s.wait_state(kid, "idle")
    assert {dict(k)["reason"]: v for k, v in Metrics(s).all("kernel_deaths_total").items()} == {"oom": 1, "exit": 1}


def test_no_word_of_a_client_becomes_a_label(server_with):
    s = server_with()
    kid = s.start_kernel("python3")
    for path in ("/zzz-word", f"/api/kernels/{kid}?zzz-word=1", "/api/kernelspecs/zzz-word", "/api/kernels/zzz-word"):
        s.request("GET", path, headers={"X-Request-Id": "zzz-word", "User-Agent": "zzz-word"})
    with Raw(s) as c:
        c.send(request(s, "ZZZ-WORD", "/api"))
        c.answer()
    with Channels(s, kid, "zzz-word") as c:
        c.send("zzz-word", {})
        assert c.run("print('zzz-word')").status == "ok"
        Metrics(s)                              # the first one adds its own route to the next
        text = Metrics(s).text
    assert "zzz" not in text.lower() and kid not in text
    lines = len(text.splitlines())
    for i in range(50):
        s.request("GET", f"/api/kernelspecs/other-{i}")
        s.request(f"M{i}", "/api")
    assert len(Metrics(s).text.splitlines()) <= lines + 2


def test_a_new_gateway_says_how_many_there_were(server_with):
    s = server_with()
    old = s.process("gateway")
    os.kill(old, signal.SIGKILL)
    s.wait_next("gateway", old)
    assert Metrics(s)("gateway_restarts_total") == 1


def test_metrics_ask_for_a_token_unless_they_are_open(server_with):
    s = server_with("--base-url", "/base")
    for path in ("/metrics", "/base/metrics"):
        assert s.request("GET", path, token=False).status == 401
        assert s.request("GET", path).status == 200
    assert s.request("POST", "/metrics").status == 405
    s = server_with("--metrics-open")
    assert s.request("GET", "/metrics", token=False).status == 200
    assert s.request("GET", "/api/kernels", token=False).status == 401


def test_a_stalled_scraper_costs_nothing_but_its_connection(own):
    with Raw(own) as c:
        for _ in range(20):
            c.send(request(own, "GET", "/metrics"))
        assert own.request("GET", "/api").status == 200
        assert c.answer()[0] == 200
    with Raw(own) as c:
        c.send(upgrade(own, "00000000-0000-4000-8000-000000000000"))
        assert c.answer()[0] == 404
