"""The launcher and the sandbox driven by the C console in the gateway's place, without any gateway."""

import os
import re
import time

import pytest

from server import BIN, Server, children_of, descendants_of, read, wait_for

TOOLS = os.path.join(os.path.dirname(os.path.dirname(BIN)), "tests")
PYTHON = "start python3 1 {gen} fds python3 -m holdcell_kernel -f {{connection_file}}"


class Console(Server):
    """`holdcell serve` with zconsole as its gateway; done when the script ended."""

    def __init__(self, script, script2="", options=()):
        super().__init__("--env-inherit", "SCRIPT,SCRIPT2", *options,
                         env={"HOLDCELL_GATEWAY": os.path.join(TOOLS, "zconsole"),
                              "SCRIPT": script, "SCRIPT2": script2})

    def lines(self):
        """What the script printed, without the server's own log lines."""
        return [line for line in self.log().splitlines() if not line.startswith(("ts=", "holdcell serving"))]

    def run(self):
        self.spawn()

        def done():
            """the script's end"""
            return self.proc.poll() is not None or re.search(r"^script: ", self.log(), re.M)
        wait_for(done, 120)
        return self.lines()


@pytest.fixture
def console():
    own = []

    def run(script, script2="", options=()):
        own.append(Console(script, script2, options))
        return own[-1].run()
    run.servers = own
    yield run
    for c in own:
        c.close()


@pytest.fixture
def scripted_spec(tmp_path):
    """A kernel path with the C kernel, which binds its own sockets."""
    d = tmp_path / "kernels" / "scripted"
    d.mkdir(parents=True)
    for p in (tmp_path, tmp_path / "kernels", d):
        p.chmod(0o755)
    (d / "scripted-kernel").write_bytes(open(os.path.join(TOOLS, "scripted-kernel"), "rb").read())
    (d / "scripted-kernel").chmod(0o755)
    (d / "kernel.json").write_text("{}")
    return str(tmp_path)


def test_a_python_kernel_keeps_state_between_cells(console):
    out = console("create memory_mb=512 home_mb=64\n" + PYTHON.format(gen=1) +
                  "\nrun x = 41; print('hi')\nrun x + 1\nstatus\nstop session")
    assert out == ["created: memory=536870912 pids=256", "ready: kernel=1 generation=1", "stdout: hi\\n", "reply: ok",
                   "result: 42", "reply: ok",
                   next(line for line in out if line.startswith("status: memory=1 limit=536870912 peak=1")),
                   "event: exited kernel=1 generation=1 code=-1 signal=9 oom=0 requested=1",
                   "stopped: session", "script: done"]


def test_a_foreign_kernel_binds_in_its_run_folder_and_loses_it(console, scripted_spec):
    out = console("create\nstart scripted 1 1 files {resource_dir}/scripted-kernel {connection_file}\n"
                  "run print hello\nseal\nrun print sealed\nstop kernel\n"
                  "start scripted 1 2 files {resource_dir}/scripted-kernel {connection_file}\nrun env HOME\nstop session",
                  options=["--kernel-path", scripted_spec])
    wanted = ["ready: kernel=1 generation=1", "stdout: hello\\n", "reply: ok", "sealed", "stdout: sealed\\n", "reply: ok",
              "stopped: kernel", "ready: kernel=1 generation=2", "stdout: /home/user\\n", "reply: ok", "stopped: session"]
    assert [line for line in out if line in wanted] == wanted, out


def test_two_kernels_of_one_session_share_its_home(console):
    out = console("create\n" + PYTHON.format(gen=1) + "\nrun open('shared.txt', 'w').write('one')\n"
                  "start python3 2 1 fds python3 -m holdcell_kernel -f {connection_file}\n"
                  "run open('shared.txt').read()\nstop session")
    assert "result: 'one'" in out, out


def test_a_file_is_read_through_init(console):
    out = console("create\n" + PYTHON.format(gen=1) + "\nrun open('a.txt', 'w').write('from the cell')\n"
                  "run import os; os.symlink('/proc/1/environ', 'link'); os.mkfifo('fifo')\n"
                  "file a.txt\nfile link\nfile fifo\nfile ../../../etc/shadow\nstop session")
    assert [line for line in out if line.startswith("file: ")] == [
        "file: from the cell", "file: refused", "file: refused", "file: refused"], out


def test_sigint_ends_a_sleep(console):
    out = console("create\n" + PYTHON.format(gen=1) + "\nbegin print('in', flush=True)\\nimport time; time.sleep(60)\n"
                  "pause 1500\nsignal INT group\nfinish\nrun 1 + 1\nstop session")
    assert "error: KeyboardInterrupt" in out and "result: 2" in out, out


def test_a_memory_bomb_is_told_with_limit_before_the_exit(console):
    out = console("create memory_mb=300 home_mb=32\n" + PYTHON.format(gen=1) +
                  "\nbegin b = []\\nwhile True: b.append(bytearray(16 << 20))\nwait exited\nstop session")
    events = [line for line in out if line.startswith("event: ")]
    assert events[0].startswith("event: oom limit=314572800"), out
    assert "signal=9 oom=1 requested=0" in events[1], out


def test_a_limit_above_the_profiles_maximum_is_refused_by_name(console):
    out = console("create memory_mb=99999999")
    assert any(line.startswith("refused: create:") and "memory" in line for line in out), out


def test_a_missing_program_is_told_and_leaves_the_session_usable(console):
    out = console("create\nstart python3 1 1 fds /no/such/kernel {connection_file}\n" + PYTHON.format(gen=2) +
                  "\nrun 5\nstop session")
    assert any(line.startswith("refused: start: exec '/no/such/kernel': it, or what interprets it, is not in the sandbox") for line in out), out
    assert "result: 5" in out


def test_an_unknown_kernelspec_and_one_outside_the_path_are_refused(console):
    out = console("create\nstart nope 1 1 fds python3 {connection_file}\nstart ../../../etc 1 1 fds python3 x\nstop session")
    assert len([line for line in out if line.startswith("refused: start:")]) == 2, out


def test_a_malformed_packet_ends_that_gateway_and_the_next_finds_the_sandbox(console):
    out = console("create\n" + PYTHON.format(gen=1) + "\nrun x = 1\nnote remember-me\ncrash",
                  "list\nstop session")
    wait_for(lambda: "script: done" in console.servers[0].log())
    out = console.servers[0].lines()
    assert any("listed: note=remember-me fds=1 kernel=1-1 running=1" in line for line in out), out
    assert "stopped: session" in out, out


def test_a_session_ends_at_its_deadline_without_any_gateway_asking(console):
    out = console("create\n" + PYTHON.format(gen=1) + "\ndeadline 800\nwait gone")
    assert any("reason=deadline" in line for line in out), out


def test_stopping_a_session_leaves_no_process(console):
    console("create\n" + PYTHON.format(gen=1) +
            "\nrun import subprocess; _ = [subprocess.Popen(['setsid', 'sleep', '1000']) for _ in range(20)]\nstop session")
    s = console.servers[0]
    gateway = [p for p in children_of(s.process("launcher")) if read(f"/proc/{p}/cmdline").split("\0")[0].endswith("/zconsole")]
    left = [p for p in descendants_of(s.proc.pid) if p != s.process("launcher")]
    assert len(gateway) == 1 and left == gateway, [read(f"/proc/{p}/cmdline") for p in left]
