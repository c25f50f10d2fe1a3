"""Each limit: set by a request, read back from what the kernel of the host says of the live session, and hit."""

import json
import os
import re
import time

import pytest

from channels import Channels
from server import cgroups_of, read, wait_for, whole_lines
from tiers import full_after

pytestmark = pytest.mark.guest
MIB = 1 << 20
ASKED = {"memory_mb": 400, "cpus": 0.5, "pids": 64, "disk_mb": 40, "tmp_mb": 24, "shm_mb": 16, "inodes": 900,
         "fds": 200, "output_mb": 2}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    from server import Server
    audit = tmp_path_factory.mktemp("audit") / "audit"
    s = Server("--audit-log", str(audit)).start()
    s.audit = audit
    yield s
    s.close()


@pytest.fixture
def limited(server):
    """A kernel with all these limits, and a socket to it."""
    kid = server.start_kernel("python3", limits=ASKED)
    with Channels(server, kid) as c:
        assert c.run("import os; kept = 4711").status == "ok"
        c.kid = kid
        yield c
    server.delete_kernel(kid)


def groups(server):
    """Directories of the one session, in every hierarchy."""
    return [d for d in cgroups_of(server.slot()) if os.path.basename(os.path.dirname(d)) == "s"]


def in_groups(server, *names):
    return next((read(f"{d}/{n}").strip() for d in groups(server) for n in names if read(f"{d}/{n}")), None)


def rlimits(pid):
    rows = {}
    for line in read(f"/proc/{pid}/limits").splitlines()[1:]:
        name, soft, hard = re.match(r"(Max .*?) {2,}(\S+) +(\S+)", line).groups()
        rows[name] = (soft, hard)
    return rows


def test_the_groups_carry_what_was_asked_for(server, limited):
    assert in_groups(server, "memory.max", "memory.limit_in_bytes") == str(400 * MIB)
    swap = in_groups(server, "memory.swap.max", "memory.memsw.limit_in_bytes")
    assert swap in ("0", str(400 * MIB), None)          # None: a kernel without swap accounting
    assert in_groups(server, "pids.max") == "64"
    quota = in_groups(server, "cpu.max") or f'{in_groups(server, "cpu.cfs_quota_us")} {in_groups(server, "cpu.cfs_period_us")}'
    assert quota == "50000 100000"


def test_the_process_has_the_limits_of_its_session(server, limited):
    pid, = server.kernels()
    largest = str(41 * MIB)                             # the largest file system, and one more: it is full first
    got = rlimits(pid)
    assert got == {**got, "Max open files": ("200", "200"), "Max processes": ("64", "64"), "Max file size": (largest, largest),
                   "Max locked memory": (str(8 * MIB),) * 2, "Max stack size": (str(8 * MIB), str(64 * MIB)),
                   "Max msgqueue size": ("0", "0"), "Max realtime priority": ("0", "0"), "Max nice priority": ("0", "0"),
                   "Max pending signals": ("1024", "1024"), "Max core file size": ("1", "1"),
                   "Max address space": ("unlimited",) * 2, "Max cpu time": ("unlimited",) * 2}


def test_the_file_systems_have_the_sizes_of_their_session(server, limited):
    pid, = server.kernels()
    mounts = {line.split()[4]: line for line in read(f"/proc/{pid}/mountinfo").splitlines()}
    assert "size=24576k" in mounts["/tmp"] and "nr_inodes=900" in mounts["/tmp"]
    assert "size=16384k" in mounts["/dev/shm"] and "nr_inodes=900" in mounts["/dev/shm"]
    home = os.statvfs(f"/proc/{pid}/root/home/user")
    assert 0.9 * 40 * MIB <= home.f_blocks * home.f_frsize <= 1.3 * 40 * MIB, home
    assert 900 <= home.f_files <= 1100, home


@pytest.mark.parametrize("where, mib", full_after(1, [("/home/user", 40), ("/tmp", 24), ("/dev/shm", 16)]))
def test_a_full_file_system_is_told_and_the_session_goes_on(server, limited, where, mib):
    run = limited.run(f"n = 0\nwith open('{where}/full', 'wb', buffering=0) as f:\n    while True: n += f.write(bytes(1 << 16))")
    assert run.ename == "OSError" and "[Errno 28]" in run.of("error")[0]["content"]["evalue"]
    assert "disk full" in run.stream("stderr") and f"{where} {mib} MiB" in run.stream("stderr")
    assert "/home/user/work" not in run.stream("stderr"), "there is none on this server"
    assert 0.8 * mib <= int(limited.run(f"os.unlink('{where}/full'); n >> 20").result) <= 1.05 * mib
    assert limited.run(f"open('{where}/again', 'w').write('x' * 100000); kept").result == "4711"


@pytest.mark.parametrize("where", full_after(1, ["/home/user", "/tmp", "/dev/shm"]))
def test_too_many_files_are_told_and_the_session_goes_on(limited, where):
    run = limited.run(f"for n in range(5000): open(f'{where}/f{{n}}', 'w').close()")
    assert run.ename == "OSError" and "disk full" in run.stream("stderr") and "900 files" in run.stream("stderr")
    assert 800 <= int(limited.run("n").result) <= 1100
    assert limited.run(f"os.unlink('{where}/f0'); open('{where}/again', 'w').close(); kept").result == "4711"


def test_a_file_larger_than_every_file_system_is_an_error_of_its_write(limited):
    run = limited.run("f = open('/tmp/sparse', 'wb')\nf.truncate(100 << 20)")
    assert run.ename == "OSError" and "[Errno 27]" in run.of("error")[0]["content"]["evalue"]        # EFBIG
    assert limited.run("f.truncate(40 << 20); kept").result == "4711"


def test_too_many_open_files_are_told(limited):
    run = limited.run("held = []\nwhile True: held.append(open('/dev/null'))")
    assert run.ename == "OSError" and "too many open files: one process may have 200" in run.stream("stderr")
    assert 100 < int(limited.run("n = len(held); held = []; n").result) < 200
    assert limited.run("kept").result == "4711"


def test_too_many_processes_are_told_and_counted(server, limited):
    run = limited.run("import time\nwhile True:\n    if os.fork() == 0:\n        time.sleep(3); os._exit(0)")
    assert run.ename == "BlockingIOError"
    assert "process limit: this session may have 64" in run.stream("stderr")
    assert int(re.search(r"max (\d+)", in_groups(server, "pids.events")).group(1)) > 0
    assert limited.run("kept").result == "4711"
    wait_for(lambda: re.search(r"event=tasks_refused .*limit=64", server.log()))


def test_too_many_threads_are_told(limited):
    run = limited.run("import threading\ngo = threading.Event()\n"
                      "while True: threading.Thread(target=go.wait, daemon=True).start()")
    assert run.ename == "RuntimeError" and "process limit" in run.stream("stderr")
    assert limited.run("go.set(); kept").result == "4711"


def test_memory_that_ends_in_a_child_is_told_with_limit_and_peak(limited):
    run = limited.run("import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'x = bytearray(1 << 30)']).returncode")
    assert run.result == "-9"
    assert "out of memory (limit 400 MiB, peak 400 MiB)" in run.stream("stderr")
    assert limited.run("kept").result == "4711"


def test_memory_that_ends_in_the_kernel_is_its_reason_everywhere(server, limited):
    run = limited.run("x = bytearray(1 << 30)")
    assert run.ename == "KernelDied" and "out of memory (limit 400 MiB, peak 400 MiB)" in run.stream("stderr")
    assert server.kernel(limited.kid)["reason"] == f"out of memory: limit {400 * MIB}, peak {400 * MIB}"
    lines = [json.loads(line) for line in whole_lines(server.audit.read_text())]
    mine = [x for x in lines if x.get("kernel") == limited.kid]
    assert [x["reason"] for x in mine if x["event"] == "kernel_died"] == ["oom"]
    assert [(x["state"], x["short_of"]) for x in mine if x["event"] == "run_end" and "short_of" in x] == [("killed", "memory")]


@pytest.mark.full
def test_two_processes_get_the_share_of_the_processor_that_was_asked_for(server, limited):
    limited.run("import subprocess, sys\nhogs = [subprocess.Popen([sys.executable, '-c', 'while True: pass']) for _ in range(2)]")

    def used():
        stats = "".join(read(f"{d}/cpu.stat") for d in groups(server))
        return int(re.search(r"usage_usec (\d+)", stats).group(1)) / 1e6
    began, before = time.monotonic(), used()
    limited.run("import time; time.sleep(4)")
    share = (used() - before) / (time.monotonic() - began)
    assert 0.1 < share < 0.65, share                    # half a core; the machine may have others to serve
    limited.run("for h in hogs: h.kill()")


def test_output_beyond_its_limit_is_dropped_and_counted(server, limited):
    run = limited.run("import sys\nfor i in range(400):\n    sys.stdout.write('x' * 9999 + '\\n'); sys.stdout.flush()\n1 / 0")
    assert run.ename == "ZeroDivisionError", "what ends a cell is never dropped"
    assert run.of("error") and 1.8 * MIB < len(run.text) <= 2 * MIB
    said = run.stream("stderr")
    assert "this cell has used up its 2 MiB of output" in said
    dropped = int(re.search(r"messages with (\d+) bytes were dropped \(limit 2 MiB\)", said).group(1))
    assert dropped + len(run.text) >= 4_000_000
    run = limited.run("print('anew')")
    assert (run.text, run.stream("stderr")) == ("anew\n", "")


def test_displays_count_as_output(limited):
    run = limited.run("from IPython.display import display\n"
                      "for i in range(5): display({'text/plain': 'y' * 1_000_000}, raw=True)\nkept")
    assert len(run.of("display_data")) == 2 and "output limit" in run.stream("stderr")
    assert run.status == "ok" and run.result is None, "a result is output too"
    assert limited.run("kept").result == "4711"


def test_log_and_metrics_tell_which_limits_were_used_up(server, limited):
    def count(of):
        return int(re.search(rf'run_shortages_total{{of="{of}"}} (\d+)', server.request("GET", "/metrics").body.decode()).group(1))
    before = {of: count(of) for of in ("disk", "files", "output")}
    limited.run("open('/tmp/full', 'wb').write(bytes(30 << 20))")
    limited.run("print('x' * 3_000_000)")
    assert {of: count(of) - n for of, n in before.items()} == {"disk": 1, "files": 0, "output": 1}
    ended = [ln for ln in server.log().splitlines() if "event=run_ended" in ln and limited.kid in ln]
    assert [re.search(r"short_of=(\S+)", ln).group(1) for ln in ended] == ["disk", "output"]


def test_cells_that_wait_are_not_blamed_for_what_the_one_before_them_used_up(limited):
    hog = limited.start("import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'x = bytearray(1 << 30)']).returncode")
    others = [limited.start(f"n{i} = {i}") for i in range(5)]
    runs = {hog: [], **{o: [] for o in others}}
    ended = set()
    while ended != set(runs):
        m = limited.recv()
        parent = (m.get("parent_header") or {}).get("msg_id")
        if parent in runs:
            runs[parent].append(m)
            if m["header"]["msg_type"] == "status" and m["content"]["execution_state"] == "idle":
                ended.add(parent)
    told = [i for i in runs if any("out of memory" in m["content"].get("text", "") for m in runs[i])]
    assert told == [hog]


def test_eagain_of_another_call_is_no_process_limit(limited):
    run = limited.run("import socket\na, b = socket.socketpair(); a.setblocking(False)\na.recv(1)")
    assert run.ename == "BlockingIOError" and run.of("error")[0]["content"]["evalue"].startswith("[Errno 11]")
    assert "[holdcell]" not in run.stream("stderr")


def test_the_error_that_ends_a_cell_passes_also_when_it_is_not_the_first(limited):
    run = limited.run("try: 1 / 0\nexcept ZeroDivisionError: get_ipython().showtraceback()\n"
                      "print('x' * 3_000_000)\nraise ValueError('the last')")
    assert [m["content"]["ename"] for m in run.of("error")] == ["ZeroDivisionError", "ValueError"]
    assert run.ename == "ValueError" and "output limit" in run.stream("stderr")


# A kernel that wants more output than it may have forges states of its cell, or belongs to nobody.
FORGED = """
import sys, time
kernel = get_ipython().kernel
socket, session, parent = kernel.iopub_socket, kernel.session, kernel.get_parent()
def say(kind, content, parent): session.send(socket, kind, content, parent=parent)
for i in range(12):
    say('stream', {'name': 'stdout', 'text': 'x' * 1_000_000}, %s)
    say('status', {'execution_state': %r}, %s)
"""


@pytest.mark.parametrize("of, state, by", full_after(1, [
    ("parent", "idle", "{'header': {k: v for k, v in parent['header'].items() if k != 'msg_type'}}"),
    ("{}", "busy", "parent"),
    ("parent", "busy", "parent"),
    ("{'header': {'msg_id': 'unknown', 'session': 'unknown', 'msg_type': 'execute_request'}}", "busy", "parent")]))
def test_forged_states_win_no_more_output(limited, of, state, by):
    began = len(limited.seen)
    assert limited.run(FORGED % (of, state, by)).reply
    assert limited.run("'after'").result == "'after'"
    texts = [m["content"]["text"] for m in limited.seen[began:] if m["header"]["msg_type"] == "stream"]
    assert sum(len(t) for t in texts if "x" * 1000 in t) <= 2 * MIB
    assert sum("has used up its" in t for t in texts) == 1


def test_output_that_is_over_a_ceiling_counts_as_output(limited):
    run = limited.run("""
kernel = get_ipython().kernel
parent = {'header': {**kernel.get_parent()['header'], 'more': 'y' * 50_000}}
for i in range(100):
    kernel.session.send(kernel.iopub_socket, 'stream', {'name': 'stdout', 'text': 'x'}, parent=parent, buffers=[b''] * 1100)
""")
    marks = run.stream("stderr").count("was dropped: ")
    assert run.status == "ok" and 20 < marks < 60, marks
    assert run.stream("stderr").count("has used up its 2 MiB") == 1
