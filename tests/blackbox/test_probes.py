"""/healthz and /readyz: what an orchestrator asks."""

import os
import shutil
import signal
import subprocess

import pytest

from server import Server, wait_for


def probe(server, path, method="GET", host="10.1.2.3:8888"):
    return server.request(method, path, headers={"Host": host, "Origin": "http://elsewhere.example"}, token=False)


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/base/healthz", "/base/readyz"])
def test_probes_need_no_token_no_base_and_no_host(server_with, path):
    for s in (server_with("--base-url", "/base/"), server_with("--base-url", "/base", token=None)):
        r = probe(s, path)
        assert r.status == 200 and r.headers["Content-Type"] == "application/json" and "no-store" in r.headers["Cache-Control"]
        assert r.json()["status"] in ("ok", "ready")
        head = probe(s, path, "HEAD")
        assert head.status == 200 and head.body == b""
        assert probe(s, path, "POST").status == 405
    assert s.request("GET", "/base/api", token=False, headers={"Host": "elsewhere.example"}).status == 403


def test_ready_names_every_check_and_nothing_else(shared):
    assert probe(shared, "/readyz").json() == {"status": "ready", "checks": dict.fromkeys(
        ["launcher", "adoption", "stopping", "spool", "kernelspec", "room"], "ok")}
    assert probe(shared, "/healthz").json() == {"status": "ok"}


def test_a_kernelspec_that_goes_and_comes(server_with, kernel_path):
    kernel_path.add("only", ["python3", "-c", "0"])
    s = server_with("--kernel-path", kernel_path.path, "--default-kernel", "only")
    assert probe(s, "/readyz").status == 200
    os.rename(f"{kernel_path.path}/kernels/only", f"{kernel_path.path}/away")
    r = wait_for(lambda: r if (r := probe(s, "/readyz")).status == 503 else None)
    assert r.json()["status"] == "unready" and r.json()["checks"]["kernelspec"] == "failed"
    assert [k for k, v in r.json()["checks"].items() if v == "failed"] == ["kernelspec"]
    assert kernel_path.path not in r.body.decode()
    assert probe(s, "/healthz").status == 200
    assert "event=not_ready check=kernelspec" in s.log()
    os.rename(f"{kernel_path.path}/away", f"{kernel_path.path}/kernels/only")
    wait_for(lambda: probe(s, "/readyz").status == 200)
    assert "event=ready_again check=kernelspec" in s.log()


def fill(path):
    """A file that takes all the room of its file system."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        while True:
            os.write(fd, b"x" * 4096)
    except OSError:
        os.close(fd)


def test_a_full_spool_is_not_ready():
    s = Server()
    os.makedirs(s.state)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k,mode=0755", "tmpfs", s.state], check=True)
    try:
        s.start()
        assert probe(s, "/readyz").status == 200
        fill(os.path.join(s.state, "filler"))
        r = wait_for(lambda: r if (r := probe(s, "/readyz")).status == 503 else None)
        assert r.json()["checks"]["spool"] == "failed"
        os.unlink(os.path.join(s.state, "filler"))
        wait_for(lambda: probe(s, "/readyz").status == 200)
        assert s.stop() == 0
    finally:
        s.close()
        subprocess.run(["umount", s.state], check=False)
        shutil.rmtree(s.dir, ignore_errors=True)


def test_a_stopped_loop_answers_nothing_and_goes_on(server_with):
    s = server_with()
    gateway = s.process("gateway")
    os.kill(gateway, signal.SIGSTOP)
    try:
        with pytest.raises(OSError):
            s.request("GET", "/healthz", timeout=2)
    finally:
        os.kill(gateway, signal.SIGCONT)
    assert wait_for(lambda: s.answers()) and probe(s, "/healthz").status == 200
