#!/usr/bin/env python3
"""Follows the lines with which quickstart.sh ends, to the letter but for the port.

connect_lines.py OUTPUT [--clients VENV] [--log FOLDER]

OUTPUT is what quickstart.sh printed; run it in the same tree, as root. It starts the server that is named there, makes
the environment of the first line for JupyterLab (or takes VENV for it), starts JupyterLab by the second, has it run a
kernel, sees that kernel at the server, and asks what VS Code asks at the address given for it. A line for each step;
exit status 0 when all went well. Needs the standard library alone."""

import argparse
import ctypes
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

DEADLINE = 180
PR_SET_PDEATHSIG = 1
LAB_TOKEN = "lines-lab-token"


class Wrong(Exception):
    pass


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def lines_of(text):
    """The server's command, the two of JupyterLab and VS Code's address, as printed."""
    end = text.rpartition("\nDone in ")[2]
    commands = [line.strip() for line in end.splitlines() if line.startswith("    ")]
    servers = [line for line in commands if "holdcell serve" in line]
    address = re.search(r"VS Code.*(http://\S+)", end)
    if len(servers) != 1 or not address:
        raise Wrong("no line names a server, or none an address for VS Code")
    two = [line.strip() for line in end.strip().splitlines()[-2:]]
    if "pip install jupyterlab" not in two[0] or "jupyter lab" not in two[1]:
        raise Wrong(f"the last two lines do not connect JupyterLab: {two}")
    return servers[0], two, address.group(1)


def request(port, method, path, token=None, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Authorization": f"token {token}"} if token else {}
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else None
    finally:
        connection.close()


def wait_for(process, port, token, log):
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        if process.poll() is not None:
            break
        try:
            if request(port, "GET", "/api", token)[0] == 200:
                return
        except (OSError, http.client.HTTPException, ValueError):
            pass
        time.sleep(0.2)
    with open(log, encoding="utf-8", errors="replace") as f:
        raise Wrong(f"nothing answers; the end of {log}:\n{f.read()[-2000:]}")


def ends_with_us():
    """What runs in a child before its exec: it is told to end when we are killed, in a session of its own too."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


class Started:
    """A command line of a shell, ended with all that belongs to it."""

    def __init__(self, line, log, cwd=None):
        with open(log, "wb") as out:
            self.process = subprocess.Popen(["bash", "-c", line], stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=cwd,
                                            start_new_session=True, preexec_fn=ends_with_us)

    def end(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()


def follow(text, clients, log):
    server_line, (install, lab_line), address = lines_of(text)
    port, lab_port = free_port(), free_port()
    if not all("127.0.0.1:8888" in line for line in (server_line, lab_line, address)):
        raise Wrong("the lines do not name the same server")
    server_line, lab_line, address = (line.replace("127.0.0.1:8888", f"127.0.0.1:{port}")
                                      for line in (server_line, lab_line, address))
    token = re.search(r"--token (\S+)", server_line).group(1)
    started = []
    with tempfile.TemporaryDirectory(prefix="holdcell-lines-") as home:
        try:
            # At a default state directory another server of this machine may be.
            server = Started(f"exec {server_line} --state-dir {home}/state", f"{log}/lines-server.log")
            started.append(server)
            wait_for(server.process, port, token, f"{log}/lines-server.log")
            print("the server named by quickstart.sh answers")

            path = address.partition(f":{port}")[2].replace("/?", "/api/kernelspecs?")
            status, specs = request(port, "GET", path)
            if status != 200 or "python3" not in specs["kernelspecs"]:
                raise Wrong(f"VS Code's address: status {status}")
            if request(port, "GET", path + "x")[0] != 401:
                raise Wrong("another token is taken too")
            print("the address for VS Code leads to its kernels")

            folder = home + "/lab"
            os.mkdir(folder)
            if clients:
                os.symlink(os.path.abspath(clients), folder + "/clients")
            else:
                with open(f"{log}/lines-install.log", "wb") as out:
                    if subprocess.run(["bash", "-c", install], cwd=folder, stdout=out, stderr=out).returncode != 0:
                        raise Wrong(f"the first line for JupyterLab fails: {log}/lines-install.log")
            more = f" --no-browser --ServerApp.port={lab_port} --IdentityProvider.token={LAB_TOKEN}"
            lab = Started(f"export HOME={folder}; {lab_line}{more}", f"{log}/lines-lab.log", folder)
            started.append(lab)
            wait_for(lab.process, lab_port, LAB_TOKEN, f"{log}/lines-lab.log")
            status, kernel = request(lab_port, "POST", "/api/kernels", LAB_TOKEN, {"name": "python3"})
            here = request(port, "GET", "/api/kernels", token)[1]
            if status != 201 or [k["id"] for k in here] != [kernel["id"]]:
                raise Wrong(f"JupyterLab's kernel ({status}: {kernel}) is not at the server: {here}")
            request(lab_port, "DELETE", "/api/kernels/" + kernel["id"], LAB_TOKEN)
            if request(port, "GET", "/api/kernels", token)[1] != []:
                raise Wrong("the kernel that JupyterLab ended is still there")
            print("a kernel started in JupyterLab runs at the server")
        finally:
            for one in reversed(started):
                one.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output")
    parser.add_argument("--clients", help="an environment with JupyterLab, instead of the one that the first line makes")
    parser.add_argument("--log", default="build/test-logs", help="folder for logs (build/test-logs)")
    words = parser.parse_args()
    os.makedirs(words.log, exist_ok=True)
    with open(words.output, encoding="utf-8", errors="replace") as f:
        text = f.read()
    try:
        follow(text, words.clients, words.log)
    except Wrong as error:
        print(f"Error: {error}")
        return 1
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))     # what runs is ended on the way
    sys.exit(main())
