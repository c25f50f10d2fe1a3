"""A session that works against the kernels which are just joining it: stopped or killed on their way from the
launcher to their exec, they hold up nobody but their own session.

The console stands in for the gateway: that one ends every process of a kernel before it starts the next, while the
launcher also starts a second kernel beside the first one."""

import os
import signal

import pytest

from server import children_of, read, wait_for
from test_supervision import KERNEL, Supervised, script

# The long way to their program, and six processes on the one processor of the session: the joining ones are met between
# the moment in which they take the session's user id and their exec.
HOSTILE = r"""
import subprocess, sys
code = '''
import os
kernel = os.getppid()
ours = (os.getpgid(kernel), os.getpgid(0))
for i in range(5):
    if os.fork() == 0: break
else: print("on", flush=True)
while True:
    for pid in range(kernel, kernel + 200):
        try: os.getpgid(pid) in ours or os.kill(pid, SIGNO)
        except OSError: pass
'''
p = subprocess.Popen([sys.executable, '-c', code], stdout=subprocess.PIPE, start_new_session=True)
print(p.stdout.readline().decode().strip())
"""
START_KERNEL = 2                        # the verb in launchmsg.h
JOINING = [KERNEL.replace("start python3 1", f"launch python3 {n}").replace("{python}", "python3") for n in range(2, 6)]


class Attacked(Supervised):
    """The first session attacks; the second one comes and goes once go_on() was called."""

    def __init__(self, signo):
        super().__init__()
        hostile = HOSTILE.replace("SIGNO", str(int(signo))).replace("\n", "\\n")
        self.mark = os.path.join(self.dir, "go on")
        self.env["SCRIPT"] = script("create", KERNEL, "run " + hostile, "detour 8000", *JOINING, "await " + self.mark,
                                    "create", KERNEL, "run 6 * 7", "stop session", "use 1", "stop session")

    def stopped_on_its_way(self):
        """a process that was stopped before its exec"""
        launcher = self.process("launcher")
        for pid in children_of(launcher):
            state = read(f"/proc/{pid}/stat").rpartition(") ")[2][:1]
            try:
                if state == "T" and os.readlink(f"/proc/{pid}/exe") == os.readlink(f"/proc/{launcher}/exe"):
                    return pid
            except OSError:
                pass
        return 0

    def go_on(self):
        """Returns what the console said since the attack began."""
        open(self.mark, "w").close()
        self.says("script: ")
        lines = [line for line in self.log().splitlines() if not line.startswith(("level=", "holdcell serving"))]
        lines = lines[lines.index("stdout: on\\n") + 2:]
        assert lines[-1] == "script: done", lines
        wanted = ["result: 42", "reply: ok", "stopped: session", "stopped: session"]
        assert [line for line in lines if line in wanted] == wanted, lines
        wait_for(lambda: not self.sandboxed())
        return lines


@pytest.fixture
def attacked():
    own = []

    def start(signo):
        own.append(Attacked(signo))
        return own[-1].ready()
    yield start
    for s in own:
        s.close()


def test_kernels_stopped_on_their_way_hold_up_nobody_and_end_with_their_session(attacked):
    s = attacked(signal.SIGSTOP)
    wait_for(s.stopped_on_its_way)
    lines = s.go_on()
    # The other session had come and gone while they still stood there.
    assert lines.index(f"late: verb={START_KERNEL} refused: the session ends") > lines.index("stopped: session"), lines


@pytest.mark.full
def test_kernels_killed_on_their_way_hold_up_nobody(attacked):
    s = attacked(signal.SIGKILL)
    lines = s.go_on()
    answers = [line for line in lines if line.startswith(f"late: verb={START_KERNEL} ")]
    assert len(answers) == len(JOINING), lines
    assert any("signal=9 oom=0 requested=0" in line for line in lines) or any("refused" in a for a in answers), lines
