#!/usr/bin/env python3
"""Starts a holdcell server, runs the battery on it, stops it.

battery.py --bin HOLDCELL --log FILE [--server OPTION]... [words of attack.py ...]

The limits of a session are told to both. HOLDCELL_START_WITH goes before the server's words, as in the black-box tests.
Ends as attack.py does, or with 3 when the server does not start or does not stop.
"""
import argparse, os, shlex, signal, socket, subprocess, sys, tempfile, time, urllib.request, uuid

LIMITS = ["--pids", "128", "--cpus", "1", "--fds", "4096", "--disk-mb", "64", "--tmp-mb", "64", "--inodes", "4000"]
HERE = os.path.dirname(os.path.abspath(__file__))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def answers(url, token):
    request = urllib.request.Request(url + "/api", headers={"Authorization": "token " + token})
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as r:
            return r.status == 200
    except OSError:
        return False


def main():
    p = argparse.ArgumentParser(description="the battery on a holdcell server of its own")
    p.add_argument("--bin", required=True)
    p.add_argument("--log", required=True, help="what the server writes")
    p.add_argument("--server", action="append", default=[], help="one more word for the server")
    o, words = p.parse_known_args()
    token, url = "battery-" + uuid.uuid4().hex, "http://127.0.0.1:%d" % free_port()
    prefix = shlex.split(os.environ.get("HOLDCELL_START_WITH", ""))
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HOLDCELL_") or k in ("HOLDCELL_RUNTIME", "HOLDCELL_TEST_WITHOUT")}
    status = 3
    with tempfile.TemporaryDirectory() as state, open(o.log, "wb") as log:
        server = subprocess.Popen(prefix + [o.bin, "serve", "--listen", url[7:], "--token", token, "--state-dir", state, "--memory-mb", "512"] + LIMITS + o.server,
                                  stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
        attack = None

        def end(*_):
            raise SystemExit(143)
        signal.signal(signal.SIGTERM, end)
        try:
            deadline = time.monotonic() + 300
            while server.poll() is None and not answers(url, token) and time.monotonic() < deadline:
                time.sleep(0.1)
            if server.poll() is None and answers(url, token):
                attack = subprocess.Popen([sys.executable, os.path.join(HERE, "attack.py"), "--url", url, "--ipc", "--mem-mb", "512", "--server-log", o.log, "--server-pid", str(server.pid)] + LIMITS + words,
                                          env={**os.environ, "HC_TOKEN": token})
                status = attack.wait()
            else:
                print("the server did not start: see " + o.log, file=sys.stderr)
        finally:
            for process in (attack, server):
                if process is not None and process.poll() is None:
                    process.terminate()
                    try:
                        process.wait(120)
                    except subprocess.TimeoutExpired:
                        process.kill()
                        status = 3
    return status


if __name__ == "__main__":
    sys.exit(main())
