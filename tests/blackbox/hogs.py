"""Cells that use up what there is, or send on their kernel's own connections what no kernel sends; for the tests that
look at what it does to others, and for bench/neighbours.py."""

SMALL = {"memory_mb": 300, "disk_mb": 32, "tmp_mb": 32, "shm_mb": 16, "pids": 64}

# ---- resources ----

CHILD = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', %r])"
MEMORY = "b = []\nwhile True:\n    b.append(bytearray(16 << 20))"
FORKS = "import os\nwhile True: os.fork()"
STOP = "import os, signal\nos.kill(-1, signal.SIGSTOP)"
FILES = "for i in range(100_000):\n    open(f'/tmp/{i}', 'w').close()"
DISK = "with open('/home/user/full', 'wb') as f:\n    while True: f.write(bytes(1 << 20))"
FLOOD = "import sys\nfor i in range(1000):\n    sys.stdout.write('x' * 1_000_000); sys.stdout.flush()"
BLOCKED = """import ctypes
libc, everything = ctypes.CDLL(None), (ctypes.c_ulong * 16)(*[2 ** 64 - 1] * 16)
libc.pthread_sigmask(0, everything, None)
%swhile True: pass"""
IGNORED = "import signal\nfor n in (2, 3, 15): signal.signal(n, signal.SIG_IGN)\n"

# ---- frames ----

# The gateway's ends are of no process that is seen inside. What is written goes on until it is refused, in a thread
# each, so that the cell itself can be interrupted.
CONNECTIONS = """
import os, select, socket, struct, threading, time
def unix():
    found = []
    for f in os.listdir('/proc/self/fd'):
        try: s = socket.socket(fileno=os.dup(int(f)))
        except OSError: continue
        if s.family == socket.AF_UNIX and s.type == socket.SOCK_STREAM: found.append(s)
    return found
def connections():
    found = []
    for s in unix():
        try: s.getpeername()
        except OSError: continue
        if struct.unpack('3i', s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0] == 0: found.append(s)
    return found
def listening():
    return [s for s in unix() if s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)]
def pour(s, chunks):
    for c in chunks:
        left = memoryview(c)
        while left:
            try: left = left[s.send(left):]
            except BlockingIOError: select.select([], [s], [])
            except OSError: return
def everywhere(chunks):
    threads = [threading.Thread(target=pour, args=(s, chunks()), daemon=True) for s in connections()]
    for t in threads: t.start()
    return threads
def forever(chunk, first=b''):
    def chunks():
        yield first
        while True: yield chunk
    return chunks
def head(n, flags=0):
    return bytes([flags | 2]) + n.to_bytes(8, 'big')
"""
WAIT = "\nfor t in threads: t.join()\nwhile True: time.sleep(1)\n"


def frames(chunks):
    return CONNECTIONS + f"threads = everywhere({chunks})" + WAIT


ACCEPTING = CONNECTIONS + """
def serve(s):
    s.setblocking(True)
    while True:
        c, _ = s.accept()
        kept.append(c)
        if first: c.sendall(first)
kept, first = [], %r
threads = [threading.Thread(target=serve, args=(s,), daemon=True) for s in listening()]
for t in threads: t.start()
while True:         # the kernel itself takes some of those that come then
    for c in connections():
        try: c.shutdown(socket.SHUT_RDWR)
        except OSError: pass
    time.sleep(1)
"""

PARTS, LARGE, ENDED = "more parts than any may have", "larger than any may be", "a command of ZMTP that is none"
GREETING = "no greeting of ZMTP 2.0 or later"
# name: (the cell, what its clients are told when it is ended for it, or None)
FRAMES = {
    "empty-parts": (frames(r"forever(b'\1\0' * 65536)"), PARTS),
    "small-parts": (frames(r"forever((b'\1\x28' + bytes(40)) * 4096)"), PARTS),
    "large-parts": (frames("forever(head(4 << 20, 1) + bytes(4 << 20))"), LARGE),
    "long-parts-of-one-message": (frames("forever(head(100 << 20, 1) + bytes(100 << 20))"), LARGE),
    "commands-that-are-queued": (frames(r"forever((b'\4\x0a\x09SUBSCRIBE') * 8192)"), ENDED),
    "a-greeting-that-is-none": (ACCEPTING % b"GET / HTTP/1.1\r\n\r\n", GREETING),
    "announced-and-never-sent": (frames("forever(b'', head(120 << 20))") .replace("while True: yield chunk", "time.sleep(3600)"), None),
    "announced-and-sent-slowly": (frames("forever(b'x', head(120 << 20))").replace("while True: yield chunk", "while True: time.sleep(0.01); yield chunk"), None),
    "endless-small-messages": (frames(r"forever(b'\0\x28' * 1 + bytes(40) + (b'\0\x28' + bytes(40)) * 4096)"), None),
    "endless-large-messages": (frames("forever(head(30 << 20) + bytes(30 << 20))"), None),
    "endless-pings": (frames(r"forever(b'\4\7\4PING\0\0' * 8192)"), None),
    "connections-never-greeted": (ACCEPTING % b"", None),
    "connections-greeted-by-half": (ACCEPTING % b"\xff\0\0\0", None),
}
