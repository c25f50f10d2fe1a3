"""The audit file: a line for each act, before it where it matters, and what a full disk does."""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

from channels import Channels
from server import BIN, TOKEN, Server, wait_for, whole_lines


@pytest.fixture
def folder():
    d = tempfile.mkdtemp(prefix="holdcell-audit-")
    yield d
    shutil.rmtree(d, ignore_errors=True)


@pytest.fixture
def audited(server_with, folder):
    def make(*options, **kw):
        s = server_with("--audit-log", f"{folder}/audit", *options, **kw)
        s.audit = f"{folder}/audit"
        return s
    return make


def records(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in whole_lines(f.read())]


def number(server, metric):
    """Of the present gateway; -1 before it has it."""
    for line in server.request("GET", "/metrics").body.decode().splitlines():
        if line.startswith(metric + " "):
            return float(line.split()[-1])
    return -1


def named(path, event, **fields):
    return [r for r in records(path) if r["event"] == event and all(r.get(k) == v for k, v in fields.items())]


def verify(*paths):
    return subprocess.run([BIN, "audit", "verify", *paths], capture_output=True, text=True, timeout=60)


def test_each_act_has_its_line_with_who_and_what(audited):
    s = audited()
    kid = s.request("POST", "/api/kernels", {"name": "python3"}, headers={"X-Request-Id": "create-1"}).json()["id"]
    code = "secret_word = 'sésame\\n' # \u2028"
    with Channels(s, kid, header=["X-Request-Id: socket-1"]) as c:
        assert c.run(code).status == "ok"
        assert c.run("1/0").status == "error"
        msg = c.start("import time; time.sleep(1000)")
        c.until(lambda m: m["header"]["msg_type"] == "execute_input" and m["parent_header"]["msg_id"] == msg)
        assert s.interrupt(kid) == 204
        assert c.finish(msg).status == "error"
        assert c.run("import os; os._exit(1)").status == "error"
        s.wait_state(kid, "idle")
    assert s.restart(kid).status == 200
    assert s.request("DELETE", f"/api/kernels/{kid}", headers={"X-Request-Id": "delete-1"}).status == 204
    assert s.request("GET", "/api/kernels?token=guessed-word", token=False).status == 401
    assert s.request("GET", "/api/kernels", token=False).status == 401
    assert s.stop() == 0

    every = records(s.audit)
    assert [r["seq"] for r in every] == list(range(1, len(every) + 1))
    for r in every:
        assert list(r)[:3] == ["ts", "seq", "event"] and list(r)[-1] == "prev"
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", r["ts"])
    order = [r["event"] for r in every if r["event"] not in ("run_start", "run_end")]
    assert order == ["audit_opened", "kernel_create", "kernel_start_end", "kernel_interrupt", "kernel_died",
                     "kernel_start_end", "kernel_restart", "kernel_start_end", "kernel_delete", "kernel_delete_end",
                     "login_failure", "login_failure", "audit_closed"]
    created, = named(s.audit, "kernel_create")
    assert created["principal"] == "default" and created["kernel"] == kid and created["kernelspec"] == "python3"
    assert created["profile"] == "default"
    assert created["request_id"] == "create-1" and created["peer"].startswith("127.0.0.1:")
    assert named(s.audit, "kernel_start_end", request_id="create-1", outcome="ok", generation=1)
    starts, ends = named(s.audit, "run_start"), named(s.audit, "run_end")
    assert [r["state"] for r in ends] == ["ok", "error", "interrupted", "kernel_died"]
    assert starts[0]["code_sha256"] == hashlib.sha256(code.encode()).hexdigest()
    assert starts[0]["code_bytes"] == len(code.encode())
    for a, b in zip(starts, ends):
        assert (a["kernel"], a["generation"], a["run"]) == (b["kernel"], b["generation"], b["run"])
        assert a["seq"] < b["seq"] and a["request_id"] == b["request_id"] == "socket-1" and b["duration_us"] > 0
    assert named(s.audit, "kernel_died", reason="exit")
    assert named(s.audit, "kernel_delete", request_id="delete-1", principal="default")
    assert [r["reason"] for r in named(s.audit, "login_failure")] == ["wrong_token", "no_token"]
    text = open(s.audit, encoding="utf-8").read()
    for word in (TOKEN, "guessed-word", "secret_word", "time.sleep"):
        assert word not in text
    assert oct(os.stat(s.audit).st_mode & 0o777) == "0o600" and os.stat(s.audit).st_uid == 0
    done = verify(s.audit)
    assert done.returncode == 0 and f"the chain of {len(every)} lines is whole" in done.stdout


def test_the_intent_comes_before_the_act(audited):
    s = audited()
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        msg = c.start("import time; time.sleep(1000)")
        c.until(lambda m: m["header"]["msg_type"] == "execute_input" and m["parent_header"]["msg_id"] == msg)
        assert len(named(s.audit, "run_start")) == 1 and not named(s.audit, "run_end")
        os.kill(s.process("gateway"), signal.SIGKILL)
    wait_for(lambda: s.answers() and named(s.audit, "audit_opened", after="start")[1:])
    assert s.stop() == 0
    assert verify(s.audit).returncode == 0


def test_runs_that_outlive_their_gateway_end_under_their_numbers_with_their_whole_time(audited, kernel_path):
    s = audited("--kernel-path", kernel_path.add_scripted().path)
    kid = s.start_kernel("scripted")
    sent = 'holdcell_kernel_messages_total{channel="shell",direction="to_kernel"}'
    with Channels(s, kid) as c:
        assert c.run("result 1").status == "ok"
        before = time.monotonic()
        long = c.start("lines 1000000 100 tick")
        c.until(lambda m: m["header"]["msg_type"] == "stream")
        begun = time.monotonic()
        behind = c.start("result 3")
        wait_for(lambda: number(s, sent) == 3)      # each is noted before it is sent, with those before it
        old = s.process("gateway")
        os.kill(old, signal.SIGKILL)
        s.wait_next("gateway", old)
    with Channels(s, kid, c.sid) as c:
        c.until(lambda m: m["header"]["msg_type"] == "stream" and "tick" in m["content"]["text"])
        least = time.monotonic() - begun
        assert s.interrupt(kid) == 204
        c.finish(behind)
        wait_for(lambda: named(s.audit, "run_end")[2:])
        most, counted = time.monotonic() - before, number(s, "holdcell_run_duration_seconds_sum")
        assert c.run("result 4").status == "ok"
    wait_for(lambda: named(s.audit, "run_end")[3:])
    starts, ends = named(s.audit, "run_start"), named(s.audit, "run_end")
    assert [r["run"] for r in starts] == sorted(r["run"] for r in ends) == [1, 2, 3, 4]
    end, = named(s.audit, "run_end", run=2)
    assert least <= end["duration_us"] / 1e6 <= most, (least, end, most)
    assert 0 < counted <= 2 * most


def test_a_lone_run_keeps_its_number_and_its_time_too(audited, kernel_path):
    s = audited("--kernel-path", kernel_path.add_scripted().path)
    kid = s.start_kernel("scripted")
    with Channels(s, kid) as c:
        c.send("kernel_info_request", {})           # counts as a request, and is no run
        assert c.run("result 1").status == "ok"
        c.start("lines 1000000 100 tick")
        for _ in range(8):                          # its note is written meanwhile
            c.until(lambda m: m["header"]["msg_type"] == "stream")
        old = s.process("gateway")
        os.kill(old, signal.SIGKILL)
        s.wait_next("gateway", old)
    with Channels(s, kid, c.sid) as c:
        c.until(lambda m: m["header"]["msg_type"] == "stream" and "tick" in m["content"]["text"])
        assert s.interrupt(kid) == 204
        last, = wait_for(lambda: named(s.audit, "run_end")[1:])
    assert last["run"] == named(s.audit, "run_start")[1]["run"] and last["duration_us"] > 500_000


def test_what_was_changed_is_found(audited):
    s = audited()
    s.delete_kernel(s.start_kernel("python3"))
    assert s.stop() == 0
    with open(s.audit, "rb") as f:
        lines = f.read().splitlines(keepends=True)
    for what, text in {
        "changed": b"".join(lines).replace(b'"python3"', b'"python2"'),
        "taken out": b"".join(lines[:2] + lines[3:]),
        "in another order": b"".join(lines[:1] + [lines[2], lines[1]] + lines[3:]),
        "put in": b"".join(lines[:2] + lines[1:]),
    }.items():
        with open(s.audit, "wb") as f:
            f.write(text)
        done = verify(s.audit)
        assert done.returncode == 1 and "does not follow the one before it" in done.stderr, what


@pytest.mark.full
def test_after_a_rotation_the_chain_goes_on_in_the_new_file(audited):
    s = audited()
    first = s.start_kernel("python3")
    os.rename(s.audit, s.audit + ".1")
    second = s.start_kernel("python3")
    assert named(s.audit + ".1", "kernel_create", kernel=second)
    s.proc.send_signal(signal.SIGHUP)
    wait_for(lambda: os.path.exists(s.audit) and named(s.audit, "audit_opened", after="rotation"))
    s.delete_kernel(first)
    assert named(s.audit, "kernel_delete", kernel=first)
    os.kill(s.process("gateway"), signal.SIGKILL)       # the next one goes on in the new file too
    wait_for(lambda: s.answers() and named(s.audit, "audit_opened", after="start"))
    assert s.stop() == 0
    assert verify(s.audit + ".1", s.audit).returncode == 0
    done = verify(s.audit)
    assert done.returncode == 0 and "it follows a line with the digest" in done.stdout
    assert verify(s.audit, s.audit + ".1").returncode == 1


class FullDisk:
    """A small file system with the audit file in it."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="holdcell-audit-")
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=0700", "tmpfs", self.dir], check=True)
        self.audit = f"{self.dir}/audit"

    def fill(self):
        fd = os.open(f"{self.dir}/filler", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            while True:
                os.write(fd, b"x" * 512)
        except OSError:
            os.close(fd)

    def clear(self):
        os.unlink(f"{self.dir}/filler")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.dir], check=False)
        os.rmdir(self.dir)


def audit_check(s):
    return s.request("GET", "/readyz", token=False).json()["checks"]["audit"]


def fill_until_it_fails(s, disk):
    disk.fill()

    def fails():
        s.request("GET", "/api/kernels", token=False)       # a login failure: a line
        return audit_check(s) == "failed"
    wait_for(fails)


@pytest.mark.full
def test_a_full_disk_is_told_and_what_waited_is_written_later():
    with FullDisk() as disk:
        s = Server("--audit-log", disk.audit).start()
        try:
            assert audit_check(s) == "ok"
            kid = s.start_kernel("python3")
            fill_until_it_fails(s, disk)
            assert "event=audit_write error=\"No space left on device\"" in s.log()
            assert s.request("GET", "/readyz", token=False).status == 503
            with Channels(s, kid) as c:
                assert c.run("1").status == "ok"            # not required: work goes on
            assert "holdcell_audit_write_failures_total 0" not in s.request("GET", "/metrics").body.decode()
            disk.clear()
            wait_for(lambda: audit_check(s) == "ok")
            assert named(disk.audit, "run_end", kernel=kid, state="ok") and "event=audit_writes_again" in s.log()
            assert s.stop() == 0
            assert verify(disk.audit).returncode == 0
        finally:
            s.close()


def test_when_it_is_required_a_full_disk_stops_what_would_not_be_seen():
    with FullDisk() as disk:
        s = Server("--audit-log", disk.audit, "--audit-required").start()
        try:
            kid = s.start_kernel("python3")
            with Channels(s, kid) as c:
                assert c.run("x = 1").status == "ok"
                fill_until_it_fails(s, disk)
                for method, path in (("POST", "/api/kernels"), ("POST", f"/api/kernels/{kid}/restart")):
                    r = s.request(method, path, {"name": "python3"})
                    assert r.status == 503 and "audit" in r.json()["message"] and r.headers["Retry-After"], r
                r = s.request("POST", "/api/sessions", {"path": "a.ipynb", "type": "notebook", "name": "", "kernel": {"name": "python3"}})
                assert r.status == 503, r
                assert len(s.request("GET", "/api/kernels").json()) == 1
                run = c.run("x = 2")
                assert run.status == "error" and run.reply["content"]["ename"] == "NotAudited"
                assert s.request("GET", "/api").status == 200
                disk.clear()
                wait_for(lambda: audit_check(s) == "ok")
                assert c.run("x").result == "1"             # the refused cell was not run
            assert s.delete_kernel(kid) == 204
            assert s.stop() == 0
            assert verify(disk.audit).returncode == 0
        finally:
            s.close()


@pytest.mark.parametrize("prepare, said", [
    (lambda p: os.symlink("/tmp/elsewhere", p), "Too many levels of symbolic links"),
    (lambda p: os.mkdir(p), "Is a directory"),
    (lambda p: os.mkfifo(p, 0o600), "is no plain file of one name"),
    (lambda p: (open(p, "w").close(), os.link(p, p + "2")), "is no plain file of one name"),
    (lambda p: (open(p, "w").close(), os.chmod(p, 0o666)), "must belong to root and be writable by root only"),
    (lambda p: (open(p, "w").close(), os.chown(p, 65534, 65534)), "must belong to root"),
], ids=["symlink", "directory", "fifo", "hard link", "writable", "owner"])
def test_a_path_that_is_not_right_is_refused_at_the_start(folder, prepare, said):
    path = f"{folder}/audit"
    prepare(path)
    got = subprocess.run([BIN, "serve", "--no-auth", "--listen", "127.0.0.1:0", "--state-dir", f"{folder}/state",
                          "--audit-log", path], capture_output=True, text=True, timeout=60)
    assert got.returncode in (1, 2) and "option --audit-log: " in got.stderr and said in got.stderr, got.stderr
    assert not os.path.exists("/tmp/elsewhere")


@pytest.mark.full
def test_two_servers_do_not_share_a_file(audited, server_with, folder):
    s = audited()
    kid = s.start_kernel("python3")
    lines = len(records(s.audit))
    got = subprocess.run([BIN, "serve", "--no-auth", "--listen", "127.0.0.1:0", "--state-dir", f"{folder}/state",
                          "--audit-log", s.audit], capture_output=True, text=True, timeout=60)
    assert got.returncode in (1, 2), got
    assert f"option --audit-log: '{s.audit}' is in use by another server" in got.stderr, got.stderr
    assert len(records(s.audit)) == lines
    os.rename(s.audit, s.audit + ".1")
    s.proc.send_signal(signal.SIGHUP)
    wait_for(lambda: os.path.exists(s.audit) and named(s.audit, "audit_opened", after="rotation"))
    other = server_with("--audit-log", s.audit + ".1")      # the old one is free
    assert named(s.audit + ".1", "audit_opened", after="start")
    assert other.stop() == 0
    os.kill(s.process("gateway"), signal.SIGKILL)           # the lock is not the gateway's
    wait_for(lambda: s.answers() and named(s.audit, "audit_opened", after="start"))
    old = s.process("launcher")
    os.kill(old, signal.SIGKILL)                            # it goes with its launcher
    wait_for(lambda: s.process("launcher") not in (0, old) and s.answers()
             and len(named(s.audit, "audit_opened", after="start")) == 2)
    assert not s.kernel(kid) and audit_check(s) == "ok"


def test_a_server_after_one_that_was_killed_has_the_file(audited, server_with, folder):
    s = audited()
    os.kill(s.proc.pid, signal.SIGKILL)
    server_with("--audit-log", s.audit)
    assert len(named(s.audit, "audit_opened", after="start")) == 2


def test_options_that_need_each_other():
    for options, said in ((["--audit-required"], "option --audit-required needs --audit-log"),
                          (["--audit-log", "audit"], "option --audit-log: 'audit' is not an absolute path")):
        got = subprocess.run([BIN, "serve", "--no-auth", "--listen", "127.0.0.1:0", *options],
                             capture_output=True, text=True, timeout=60)
        assert got.returncode == 2 and said in got.stderr


def test_login_failures_fill_no_disk(audited):
    s = audited()
    minute = time.monotonic() // 60                         # the server's clock, too
    for _ in range(700):
        assert s.request("GET", "/api", token=False).status == 401
    lines = len(named(s.audit, "login_failure"))
    assert lines == 600 or (time.monotonic() // 60 > minute and 600 < lines <= 700)
