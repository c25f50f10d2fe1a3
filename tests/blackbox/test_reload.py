"""SIGHUP: files among the settings are read again, and take effect only when all of it is right."""

import contextlib
import fcntl
import os
import re
import signal
import struct
import subprocess
import termios
import threading

import pytest

from server import BIN, DEADLINE, Server, status_of, wait_for

OLD, NEW = "old-t0ken-of-this-test", "new-t0ken-of-this-test"


class TokenServer(Server):
    """Its token comes from a file."""

    def argv(self):
        argv = super().argv()
        i = argv.index("--token")
        argv[i:i + 2] = ["--token-file", self.token_file]
        return argv

    @property
    def token_file(self):
        return os.path.join(self.dir, "token")

    def write(self, token):
        with open(self.token_file, "w") as f:
            f.write(token + "\n")
        os.chmod(self.token_file, 0o600)
        return self

    def hang_up(self, event):
        """Sends SIGHUP and waits for the supervisor's word; gives the line of the log."""
        before = len(re.findall(rf"event={event}\b", self.log()))
        self.proc.send_signal(signal.SIGHUP)

        def told():
            lines = [x for x in self.log().splitlines() if re.search(rf"event={event}\b", x)]
            return lines[before:]
        told.__doc__ = f"{event} in the log"
        return wait_for(told)[0]

    def status(self, token):
        return self.request("GET", "/api/kernels", headers={"Authorization": f"token {token}"}, token=False).status


@pytest.fixture
def server():
    s = TokenServer(token=OLD).write(OLD).start()
    yield s
    s.close()


def test_a_new_token_in_the_file_takes_effect_without_a_restart(server):
    gateway, kid = server.process("gateway"), server.start_kernel()
    assert (server.status(OLD), server.status(NEW)) == (200, 401)
    server.write(NEW).hang_up("settings_taken")
    assert (server.status(OLD), server.status(NEW)) == (401, 200)
    assert server.process("gateway") == gateway
    server.token = NEW
    assert server.kernel(kid)
    assert OLD not in server.log() and NEW not in server.log()


@pytest.mark.parametrize("content, why", [
    ("", "the token in --token-file is empty"),
    ("two words", "holds a blank"),
    ("x" * 600, "longer than 512"),
    ("a\0b", "NUL byte"),
])
def test_a_broken_file_changes_nothing_and_is_told(server, content, why):
    line = server.write(content).hang_up("reload_refused")
    assert why in line and "level=error" in line and "the old settings stay in force" in line
    assert (server.status(OLD), server.status(NEW)) == (200, 401)
    server.write(NEW).hang_up("settings_taken")
    assert server.status(NEW) == 200


def write_in_two(path, first, second):
    """To a FIFO, the second half when the first was read by itself. Returns the thread."""
    def write():
        with open(path, "wb", buffering=0) as f:
            f.write(first)
            wait_for(lambda: struct.unpack("i", fcntl.ioctl(f, termios.FIONREAD, bytes(4)))[0] == 0, every=0.01)
            with contextlib.suppress(BrokenPipeError):
                f.write(second)
    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    return thread


def test_a_token_that_comes_through_a_pipe_in_pieces_is_whole():
    s = TokenServer(token=OLD)
    os.mkfifo(s.token_file, 0o600)
    writer = write_in_two(s.token_file, OLD[:9].encode(), OLD[9:].encode() + b"\n")
    try:
        s.start()
        writer.join(DEADLINE)
        assert (s.status(OLD), s.status(OLD[:9])) == (200, 401)
    finally:
        s.close()


def test_what_comes_through_a_pipe_in_pieces_is_bounded(tmp_path):
    fifo = str(tmp_path / "token")
    os.mkfifo(fifo, 0o600)
    write_in_two(fifo, b"x" * 300, b"x" * 300)
    done = subprocess.run([BIN, "serve", "--listen", "127.0.0.1:0", "--state-dir", str(tmp_path / "state"), "--token-file",
                           fifo], capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode == 2 and "longer than 512" in done.stderr


def test_a_file_that_is_gone_changes_nothing_and_is_told(server):
    os.unlink(server.token_file)
    assert server.token_file in server.hang_up("reload_refused")
    assert server.status(OLD) == 200


@pytest.mark.parametrize("mode", [0o604, 0o644, 0o620, 0o666])
def test_a_file_that_others_may_read_or_change_is_refused(server, tmp_path, mode):
    server.write(NEW)
    os.chmod(server.token_file, mode)
    line = server.hang_up("reload_refused")
    assert f"option --token-file: '{server.token_file}' has mode {mode:04o}" in line and "chmod 600" in line
    assert server.status(OLD) == 200
    done = subprocess.run([BIN, "serve", "--listen", "127.0.0.1:0", "--state-dir", str(tmp_path / "state"), "--token-file",
                           server.token_file], capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode == 2 and f"has mode {mode:04o}" in done.stderr


@pytest.mark.parametrize("name", ["gateway", "launcher"])
def test_who_comes_after_a_reload_has_the_new_settings(server, name):
    kid = server.start_kernel()
    server.write(NEW).hang_up("settings_taken")
    old = server.process(name)
    os.kill(old, signal.SIGKILL)
    server.token = NEW
    server.wait_next(name, old)
    assert (server.status(OLD), server.status(NEW)) == (401, 200)
    assert bool(server.kernel(kid)) == (name == "gateway")      # kernels go with their launcher


def test_a_reload_outlives_a_launcher_that_dies_meanwhile(server):
    """Both reach the supervisor in one turn, the signal first: the reload's trial runs while leftovers are killed."""
    old = server.process("launcher")
    server.write(NEW).proc.send_signal(signal.SIGSTOP)
    wait_for(lambda: status_of(server.proc.pid)["State"].startswith("T"))
    server.proc.send_signal(signal.SIGHUP)
    os.kill(old, signal.SIGKILL)
    wait_for(lambda: status_of(old).get("State", "Z").startswith("Z"))
    server.proc.send_signal(signal.SIGCONT)
    server.token = NEW
    server.wait_next("launcher", old)
    wait_for(lambda: server.status(NEW) == 200)
    assert server.status(OLD) == 401
    assert "event=reload_published version=2" in server.log() and "event=reload_refused" not in server.log()


def test_a_storm_of_signals_ends_with_the_last_state_of_the_file(server):
    gateway = server.process("gateway")
    for i in range(40):
        server.write(f"token-number-{i}")
        server.proc.send_signal(signal.SIGHUP)

    def last():
        """the last token working"""
        return server.status("token-number-39") == 200
    wait_for(last)
    assert server.process("gateway") == gateway and server.status(OLD) == 401
    server.token = "token-number-39"


def test_a_gateway_can_read_the_settings_and_write_them_by_no_door(server):
    """The page is root's, mode 0400; the descriptor is for reading."""
    fd = f"/proc/{server.process('gateway')}/fd/5"
    assert "holdcell-settings" in os.readlink(fd)
    st = os.stat(fd)
    assert (st.st_uid, st.st_mode & 0o777) == (0, 0o400)
    flags = int(re.search(r"^flags:\s*(\d+)", open(fd.replace("/fd/", "/fdinfo/")).read(), re.M).group(1), 8)
    assert flags & os.O_ACCMODE == os.O_RDONLY


def test_without_a_file_among_the_options_sighup_says_so_and_changes_nothing(server_with):
    s = server_with()
    kid = s.start_kernel()
    s.proc.send_signal(signal.SIGHUP)

    def told():
        """event=reload in the log"""
        return "event=reload " in s.log()
    wait_for(told)
    assert "need a restart" in s.log() and s.kernel(kid)
