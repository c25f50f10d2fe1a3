"""Kernels that are started with the server, and the notebook that kernels run first."""

import json
import os
import re
import signal
import subprocess
import time

import pytest

from channels import Channels
from server import BIN, Server, free_port, wait_for

IPYKERNEL = ["python3", "-P", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
SOME = ["x = 6", ["y = x", " * 7\n", "print('seen by nobody')"], "%who_ls", "", "z = [1]"]


def notebook(path, *cells, kernel="python3", **top):
    """Code cells, with one markdown and one raw cell before them."""
    def cell(kind, source):
        return {"cell_type": kind, "source": source, "metadata": {},
                **({"outputs": [], "execution_count": None} if kind == "code" else {})}
    n = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": {"name": kernel, "display_name": "x"}},
         "cells": [cell("markdown", "1 / 0"), cell("raw", ["1 /", " 0"])] + [cell("code", c) for c in cells], **top}
    with open(path, "w") as f:
        json.dump(n, f)
    return str(path)


def serve(*options):
    """What `serve` says when it does not start."""
    return subprocess.run([BIN, "serve", "--no-auth", "--listen", f"127.0.0.1:{free_port()}", *options],
                          capture_output=True, text=True, timeout=60)


def kernels(s):
    return s.request("GET", "/api/kernels").json()


def value(s, kid, expression):
    with Channels(s, kid) as c:
        return c.run(expression).result


# --- prespawn ------------------------------------------------------------------------

@pytest.mark.full
def test_kernels_are_started_with_the_server_once(server_with):
    s = server_with("--prespawn", "2")
    wait_for(lambda: "event=prespawned kernels=2 failed=0" in s.log())
    assert [k["name"] for k in kernels(s)] == ["python3", "python3"]
    assert len({s.start_kernel(), *(k["id"] for k in kernels(s))}) == 3     # a POST gets none of them
    before = {k["id"] for k in kernels(s)}
    s.delete_kernel(sorted(before)[0])
    gateway = s.process("gateway")
    os.kill(gateway, signal.SIGKILL)
    wait_for(lambda: s.process("gateway") not in (0, gateway) and s.answers())
    assert {k["id"] for k in kernels(s)} == before - {sorted(before)[0]}
    assert s.log().count("event=prespawned") == 1
    os.kill(s.process("launcher"), signal.SIGKILL)      # takes all kernels along: the next one starts with new ones
    wait_for(lambda: s.log().count("event=prespawned") == 2)
    wait_for(lambda: s.answers() and len(kernels(s)) == 2)


def test_a_kernel_that_cannot_be_started_with_the_server_is_an_error_in_the_log(server_with, kernel_path):
    kernel_path.add("absent", ["/no/such/program", "{connection_file}"])
    s = server_with("--kernel-path", kernel_path.path, "--default-kernel", "absent", "--prespawn", "2")
    wait_for(lambda: re.search("level=error .*event=prespawned kernels=0 failed=2", s.log()))
    assert len(re.findall(r"^.*level=error .*event=prespawn_failed number=\d kernelspec=.default. error=.*/no/such/program", s.log(), re.M)) == 2
    assert kernels(s) == []
    assert s.request("POST", "/api/kernels", {"name": "python3"}).status == 201


def test_more_kernels_than_may_run_are_refused():
    r = serve("--prespawn", "3", "--max-kernels", "2")
    assert r.returncode == 2 and "--prespawn: 3 kernels are more than --max-kernels 2" in r.stderr


# --- the seed notebook -----------------------------------------------------------------

def test_names_of_the_seed_exist_before_the_first_cell(server_with, tmp_path):
    s = server_with("--seed-notebook", notebook(tmp_path / "s.ipynb", *SOME), "--prespawn", "1")
    with Channels(s, s.start_kernel()) as c:
        run = c.run("print(x, y, z)")
        assert run.text == "6 42 [1]\n"
        assert "seen by nobody" not in json.dumps(c.seen)
    wait_for(lambda: "event=prespawned kernels=1" in s.log())
    assert value(s, kernels(s)[0]["id"], "y") == "42"
    r = s.request("POST", "/api/sessions", {"path": "a.ipynb", "type": "notebook", "kernel": {"name": "python3"}})
    assert r.status == 201 and value(s, r.json()["kernel"]["id"], "y") == "42"
    r = s.request("PATCH", f"/api/sessions/{r.json()['id']}", {"kernel": {"id": None, "name": "python3"}})
    assert r.status == 200 and value(s, r.json()["kernel"]["id"], "y") == "42"


@pytest.mark.full
def test_a_restarted_kernel_runs_the_seed_again(server_with, tmp_path):
    s = server_with("--seed-notebook", notebook(tmp_path / "s.ipynb", *SOME))
    kid = s.start_kernel()
    with Channels(s, kid) as c:
        assert c.run("y = 'mine'; mine = 1").status == "ok"
        assert s.restart(kid).status == 200
        assert c.run("y, 'mine' in dir()").result == "(42, False)"
        c.start("import os; os._exit(1)")
        c.until(lambda m: m["header"]["msg_type"] == "status" and m["content"]["execution_state"] == "restarting")
        assert c.run("y").result == "42"


@pytest.mark.full
def test_kernels_of_another_name_do_not_run_it(server_with, tmp_path, kernel_path):
    kernel_path.add("other", IPYKERNEL, language="python")
    s = server_with("--kernel-path", kernel_path.path, "--seed-notebook", notebook(tmp_path / "s.ipynb", "x = 1",
                                                                                     kernel="Other"))
    assert value(s, s.start_kernel("other"), "x") == "1"
    assert value(s, s.start_kernel("python3"), "'x' in dir()") == "False"


def test_a_seed_that_fails_ends_the_kernel_and_says_where(server_with, tmp_path):
    s = server_with("--seed-notebook", notebook(tmp_path / "s.ipynb", "x = 1", "y = naïve", "z = 1"), "--prespawn", "1")
    wait_for(lambda: "event=prespawned kernels=0 failed=1" in s.log())
    before = s.counters()
    r = s.request("POST", "/api/kernels", {})
    assert r.status == 500 and r.json()["message"] == "seed notebook: cell 4: NameError: name 'naïve' is not defined"
    r = s.request("POST", "/api/sessions", {"path": "a", "type": "notebook", "kernel": {}})
    assert r.status == 500 and "cell 4: NameError" in r.json()["message"]
    assert kernels(s) == [] and s.request("GET", "/api/sessions").json() == [] and s.kernels() == []
    wait_for(lambda: all(now <= before[k] for k, now in s.counters().items()))


def said_until_dead(c):
    """What the gateway itself has on stderr in all that a socket says up to `dead`."""
    c.until(lambda m: m["header"]["msg_type"] == "status" and m["content"]["execution_state"] == "dead")
    return [m["content"]["text"] for m in c.seen if m["header"]["msg_type"] == "stream" and "[holdcell]" in m["content"]["text"]]


def test_sockets_hear_why_a_seed_failed_at_a_restart(server_with, tmp_path):
    s = server_with("--seed-notebook", notebook(tmp_path / "s.ipynb", "import os; 1 / (not os.path.exists('second'))"))
    kid = s.start_kernel()
    with Channels(s, kid) as c, Channels(s, kid) as other:
        assert c.run("open('second', 'w').close()").status == "ok"
        r = s.request("POST", f"/api/kernels/{kid}/restart", {})
        why = "seed notebook: cell 3: ZeroDivisionError: division by zero"
        assert r.status == 500 and r.json()["message"].endswith(why)
        assert said_until_dead(c) == said_until_dead(other) == [f"\n[holdcell] {why}\n"]


@pytest.mark.full
def test_sockets_of_a_kernel_that_never_was_hear_why(server_with, tmp_path):
    s = server_with("--seed-notebook", notebook(tmp_path / "s.ipynb", "import os, time\nwhile not os.path.exists('/tmp/go'): time.sleep(0.1)"),
                    "--seed-timeout", "15", "--prespawn", "1")
    with Channels(s, wait_for(lambda: kernels(s))[0]["id"]) as c:
        assert said_until_dead(c) == ["\n[holdcell] seed notebook: cell 3: the notebook was not done within 15 s\n"]


@pytest.mark.parametrize("cell, says", [
    ("import os; os._exit(3)", "cell 3: the kernel died: exited with code 3"),
    ("import os; os.kill(os.getpid(), 9)", "cell 3: the kernel died: killed by signal 9"),
    ("input('?')", "cell 3: StdinNotImplementedError"),
    ("raise Exception('lö' * 1000)", "cell 3: Exception: lölö"),
    pytest.param("import time; time.sleep(600)", "cell 3: the notebook was not done within 15 s", marks=pytest.mark.full),
])
def test_other_ways_to_fail(server_with, tmp_path, cell, says):
    s = server_with("--seed-notebook", notebook(tmp_path / "s.ipynb", cell), "--seed-timeout", "15")
    r = s.request("POST", "/api/kernels", {})
    assert r.status == 500 and says in r.json()["message"], r
    assert kernels(s) == []
    wait_for(lambda: s.kernels() == [])


@pytest.mark.full
def test_while_the_seed_runs_the_kernel_starts_and_clients_wait(server_with, tmp_path):
    s = server_with("--seed-notebook", notebook(tmp_path / "s.ipynb", "import time; time.sleep(8)", "x = 5"),
                    "--prespawn", "1", "--cull-idle-timeout", "1", "--cull-interval", "0.5", "--cull-connected")
    kid = wait_for(lambda: kernels(s))[0]["id"]
    with Channels(s, kid) as c:
        sent = c.start("x; import time; time.sleep(300)")       # a shorter one may be over before a slow kernel hears of it
        assert s.kernel(kid)["execution_state"] == "starting"
        assert s.interrupt(kid) == 204      # not meant for the seed, but for the cell that waits
        assert c.finish(sent).ename == "KeyboardInterrupt"
        assert c.run("x").result == "5"


def test_a_kernel_that_is_deleted_while_its_seed_runs_is_gone_at_once(server_with, tmp_path):
    s = server_with("--seed-notebook", notebook(tmp_path / "s.ipynb", "import time; time.sleep(50)"), "--prespawn", "1")
    kid = wait_for(lambda: kernels(s))[0]["id"]
    wait_for(lambda: s.kernels())
    time.sleep(1)
    start = time.monotonic()
    assert s.delete_kernel(kid) == 204
    assert time.monotonic() - start < 20 and s.kernels() == []
    wait_for(lambda: "failed=1" in s.log())


@pytest.mark.full
def test_a_gateway_that_dies_while_a_seed_runs_leaves_no_half_of_it(server_with, tmp_path):
    s = server_with("--prespawn", "1", "--seed-notebook",
                    notebook(tmp_path / "s.ipynb", "import time; time.sleep(4); x = []", "x.append(1)"))
    kid = wait_for(lambda: kernels(s))[0]["id"]
    wait_for(lambda: s.kernels())
    time.sleep(1)
    gateway = s.process("gateway")
    os.kill(gateway, signal.SIGKILL)
    wait_for(lambda: s.process("gateway") not in (0, gateway) and s.answers())
    assert value(s, kid, "x") == "[1]"


def test_a_new_notebook_is_taken_at_sighup(server_with, tmp_path):
    path = tmp_path / "s.ipynb"
    s = server_with("--seed-notebook", notebook(path, "x = 1"))
    notebook(path, "x = 2")
    s.proc.send_signal(signal.SIGHUP)
    wait_for(lambda: "event=settings_taken" in s.log())
    assert value(s, s.start_kernel(), "x") == "2"
    path.write_text("{")
    s.proc.send_signal(signal.SIGHUP)
    wait_for(lambda: "event=reload_refused" in s.log())
    assert value(s, s.start_kernel(), "x") == "2"


@pytest.mark.parametrize("text, says", [
    ("{", "this is no notebook: line 1"),
    ("[]", "it has no nbformat"),
    ('{"nbformat": 3, "worksheets": []}', "nbformat is 3, not 4"),
    ('{"nbformat": 4}', "no list of cells"),
    ('{"nbformat": 4, "cells": [{"cell_type": "video"}], "metadata": {"kernelspec": {"name": "python3"}}}',
     "cell 1 has the unknown cell_type 'video'"),
    ('{"nbformat": 4, "cells": [{"cell_type": "code", "source": 5}]}', "cell 1: source is neither"),
    ('{"nbformat": 4, "cells": []}', "names no kernelspec"),
    ('{"nbformat": 4, "cells": [], "metadata": {"kernelspec": {"name": "nosuch"}}}', "Kernel spec nosuch not found"),
    (" " * (8 * 1024 * 1024 + 1), "more than 8388608 bytes"),
])
def test_a_file_that_is_no_seed_is_refused_at_the_start(tmp_path, text, says):
    path = tmp_path / "s.ipynb"
    path.write_text(text)
    r = serve("--seed-notebook", str(path), "--state-dir", str(tmp_path / "state"))
    assert r.returncode == 2 and "option --seed-notebook: " in r.stderr and says in r.stderr, r


def test_what_is_no_file_is_refused_at_the_start(tmp_path):
    for name, says in (("https://host/n.ipynb", "is a URL"), (str(tmp_path), "no regular file"),
                       (str(tmp_path / "none"), "No such file"), ("", "empty")):
        r = serve("--seed-notebook", name, "--state-dir", str(tmp_path / "state"))
        assert r.returncode == 2 and "--seed-notebook" in r.stderr and says in r.stderr, r


def test_a_forced_kernelspec_takes_the_place_of_the_notebooks_own(tmp_path):
    s = Server("--force-kernel", "python3", "--seed-notebook", notebook(tmp_path / "s.ipynb", "x = 3", kernel="nosuch"))
    try:
        s.start()
        assert value(s, s.start_kernel("whatever"), "x") == "3"
    finally:
        s.close()


def test_kernels_that_would_be_nobodys_are_refused(tmp_path):
    r = subprocess.run([BIN, "token", "new", "--name", "alice"], capture_output=True, text=True, timeout=60)
    path = tmp_path / "principals"
    path.write_text(r.stdout[r.stdout.index("{"):])
    path.chmod(0o600)
    r = subprocess.run([BIN, "serve", "--listen", f"127.0.0.1:{free_port()}", "--state-dir", str(tmp_path / "state"),
                        "--principals", str(path), "--prespawn", "1"], capture_output=True, text=True, timeout=60)
    assert r.returncode == 2 and "option --prespawn: the kernels belong to the principal 'default'" in r.stderr, r
