"""Observer on the host, beside the gateway, as root: canaries and counters outside the sandbox."""
import ctypes, mmap, os, re, shutil, socket, subprocess, threading, uuid


def rd(p, n=1 << 20):
    try:
        with open(p, "rb") as f:
            return f.read(n)
    except OSError:
        return b""


def resident(path, read=False):
    "how many pages of a file are in the host's memory, after it was read when asked so"
    libc = ctypes.CDLL(None, use_errno=True); libc.mmap.restype = ctypes.c_void_p
    with open(path, "rb") as f:
        if read:
            f.read()
        n = os.fstat(f.fileno()).st_size; seen = (ctypes.c_ubyte * (n // mmap.PAGESIZE + 1))()
        at = libc.mmap(None, ctypes.c_size_t(n), mmap.PROT_READ, mmap.MAP_SHARED, f.fileno(), ctypes.c_long(0))
        r = libc.mincore(ctypes.c_void_p(at), ctypes.c_size_t(n), seen); libc.munmap(ctypes.c_void_p(at), ctypes.c_size_t(n))
    return sum(p & 1 for p in seen) if r == 0 else 0


class Growth:
    """How far the memory of processes goes beyond what they had when this was made. The kernel remembers each one's peak,
    so that what is given back between two looks is seen all the same."""
    def __init__(self, processes):
        "processes: name -> (pid, ...), as of Host.server()"
        self.began, self.most = {}, {}
        for name, (pid, *_) in processes.items():
            try:
                with open("/proc/%d/clear_refs" % pid, "w") as f:
                    f.write("5")                           # its peak is what it has now
                reset = True
            except OSError:
                reset = False
            self.began[name] = (pid, self.has(pid), reset); self.most[name] = 0.0

    @staticmethod
    def has(pid):
        "MB: resident and swapped out, and the most that was ever resident; None when it is gone"
        m = {k: int(v) / 1024 for k, v in re.findall(rb"(VmRSS|VmHWM|VmSwap):\s+(\d+)", rd("/proc/%d/status" % pid))}
        return (m[b"VmRSS"] + m.get(b"VmSwap", 0), m.get(b"VmHWM", 0)) if b"VmRSS" in m else None

    def look(self):
        "MB by which all of them together went beyond; of one that has died, as far as it was seen"
        for name, (pid, began, reset) in self.began.items():
            now = self.has(pid)
            if began and now:
                peak = now[1] - began[1] if reset else 0
                self.most[name] = max(self.most[name], now[0] - began[0], peak)
        return sum(self.most.values())

    def __str__(self):
        return ", ".join("%s %+.0f MB" % (n, m) for n, m in self.most.items())


class Host:
    "canaries and counters outside the sandbox"
    def __init__(self):
        self.tag = uuid.uuid4().hex[:8]
        self.dir = "/var/tmp/hc-canary-" + self.tag
        os.mkdir(self.dir, 0o755); os.chmod(self.dir, 0o755)
        self.files = {}
        for n, mode in (("open.txt", 0o644), ("secret.txt", 0o600), ("writable.txt", 0o666)):
            tok = "CANARY" + uuid.uuid4().hex
            p = os.path.join(self.dir, n)
            with open(p, "w") as f:
                f.write(tok + "\n")
            os.chmod(p, mode); self.files[n] = (p, tok)
        self.rootfile = "/root/.hc-canary-" + self.tag
        with open(self.rootfile, "w") as f:
            f.write(self.files["secret.txt"][1])
        self.procs = []; self.socks = []; self.hits = {}; self.stop = False
        self.pidns = os.readlink("/proc/self/ns/pid")

    def proc(self, uid=None):
        "a host process with a token in argv and another in its environment; returns (Popen, argv token, env token)"
        a, e = "ARGV" + uuid.uuid4().hex, "ENVI" + uuid.uuid4().hex
        kw = dict(user=uid, group=uid, extra_groups=[]) if uid else {}
        p = subprocess.Popen(["/bin/sh", "-c", "while :; do sleep 1; done", a], env={"HC_CANARY": e, "PATH": "/usr/bin:/bin"},
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, cwd="/", **kw)
        self.procs.append(p)
        return p, a, e

    def listen(self, kind, addr):
        "canary listener; returns its name in self.hits and the address bound"
        fam, typ = {"tcp": (socket.AF_INET, 1), "tcp6": (socket.AF_INET6, 1), "udp": (socket.AF_INET, 2),
                    "unix": (socket.AF_UNIX, 1), "dgram": (socket.AF_UNIX, 2)}[kind]
        s = socket.socket(fam, typ)
        s.bind(addr)
        if kind == "unix" and isinstance(addr, str) and addr[0] != "\0":
            os.chmod(addr, 0o777)
        key = "%s:%r" % (kind, addr); self.hits[key] = 0
        if typ == 1:
            s.listen(16)
        s.settimeout(0.3); self.socks.append((s, addr))

        def loop():
            while not self.stop:
                try:
                    if typ == 1:
                        c, _ = s.accept(); self.hits[key] += 1
                        try:
                            c.sendall(b"CANARYHELLO\n")
                        except OSError:
                            pass
                        c.close()
                    else:
                        s.recvfrom(2048); self.hits[key] += 1
                except socket.timeout:
                    continue
                except OSError:
                    return
        threading.Thread(target=loop, daemon=True).start()
        return key, s.getsockname()

    def by_comm(self, name):
        out = []
        for p in os.listdir("/proc"):
            if p.isdigit():
                try:
                    for t in os.listdir("/proc/%s/task" % p):
                        if rd("/proc/%s/task/%s/comm" % (p, t)).strip().decode("latin-1") == name:
                            out.append(int(p)); break
                except OSError:
                    pass
        return out

    def pid_of(self, s):
        "host pid of the kernel of a session"
        if getattr(s, "_hp", None) and os.path.exists("/proc/%d" % s._hp):
            return s._hp
        n = "hk" + uuid.uuid4().hex[:9]
        s.cell("old=open('/proc/self/comm').read().strip() if os.path.exists('/proc/self/comm') else 'python'\nsetname(P['n'])\nrep(done=1, old=old)", n=n)
        v = self.by_comm(n)
        if len(v) != 1:
            raise Skip("the kernel is not visible as a host process (%d matches)" % len(v))
        s._hp = v[0]
        return v[0]

    def tree(self, pid):
        "host pids of a session: same pid namespace if it has one, else descendants"
        try:
            ns = os.readlink("/proc/%d/ns/pid" % pid)
        except OSError:
            return []
        out = []; pp = {}
        for p in os.listdir("/proc"):
            if not p.isdigit():
                continue
            try:
                if ns != self.pidns:
                    if os.readlink("/proc/%s/ns/pid" % p) == ns:
                        out.append(int(p))
                else:
                    pp[int(p)] = int(rd("/proc/%s/stat" % p).rsplit(b")", 1)[1].split()[1])
            except (OSError, IndexError):
                pass
        if ns == self.pidns:
            for p in pp:
                q = p
                while q and q != pid:
                    q = pp.get(q, 0)
                if q == pid:
                    out.append(p)
        return out

    @staticmethod
    def rss_mb(pid):
        m = re.search(rb"VmRSS:\s+(\d+)", rd("/proc/%d/status" % pid))
        return int(m.group(1)) / 1024 if m else 0.0

    @staticmethod
    def cpu_s(pids):
        t = 0
        for p in pids:
            try:
                f = rd("/proc/%d/stat" % p).rsplit(b")", 1)[1].split(); t += int(f[11]) + int(f[12])
            except IndexError:
                pass
        return t / os.sysconf("SC_CLK_TCK")

    @staticmethod
    def cpu_quota(pid):
        "cores allowed by the cgroups above a process, None without a quota"
        best = None
        for ln in rd("/proc/%d/cgroup" % pid).decode().splitlines():
            _, ctl, path = ln.split(":", 2)
            base = "/sys/fs/cgroup" if not ctl and os.path.exists("/sys/fs/cgroup/cgroup.controllers") else "/sys/fs/cgroup/unified" if not ctl else "/sys/fs/cgroup/" + ctl
            if ctl and "cpu" not in ctl.split(","):
                continue
            while path not in ("", "/"):
                w = rd(base + path + "/cpu.max").split()
                if len(w) == 2 and w[0] != b"max":
                    best = min(best or 1e9, int(w[0]) / int(w[1]))
                q, per = rd(base + path + "/cpu.cfs_quota_us"), rd(base + path + "/cpu.cfs_period_us")
                if q and per and int(q) > 0:
                    best = min(best or 1e9, int(q) / int(per))
                path = os.path.dirname(path)
        return best

    @staticmethod
    def holders(port):
        "pids of the processes which hold the listening socket of a TCP port of this host"
        inodes = set()
        for f in ("/proc/net/tcp", "/proc/net/tcp6"):
            for ln in rd(f).decode().splitlines()[1:]:
                w = ln.split()
                if w[3] == "0A" and int(w[1].rsplit(":", 1)[1], 16) == port:
                    inodes.add("socket:[%s]" % w[9])
        out = []
        for p in os.listdir("/proc"):
            if p.isdigit():
                try:
                    if any(os.readlink("/proc/%s/fd/%s" % (p, fd)) in inodes for fd in os.listdir("/proc/%s/fd" % p)):
                        out.append(int(p))
                except OSError:
                    pass
        return out

    @staticmethod
    def stat(pid):
        "(state, parent, start time) of a process, None when it is gone"
        w = rd("/proc/%d/stat" % pid).rsplit(b")", 1)[-1].split()
        return (w[0].decode(), int(w[1]), int(w[19])) if len(w) > 19 else None

    def server_pid(self, port):
        "the topmost of the processes which hold the listening socket"
        have = self.holders(port)
        top = [p for p in have if self.stat(p) and self.stat(p)[1] not in have]
        return top[0] if len(top) == 1 else None

    def server(self, pid):
        """name -> (pid, start time) of the processes a server consists of: the one of this pid, and with holdcell its
        launcher and its gateway. Dead ones are not in it; pid and start time together are one process for ever."""
        kin = {}
        for p in os.listdir("/proc"):
            st = self.stat(int(p)) if p.isdigit() else None
            if st:
                kin.setdefault(st[1], []).append(int(p))
        out = {}; todo = [(pid, "server")]
        while todo:
            p, name = todo.pop(); st = self.stat(p)
            if not st or st[0] in "ZX":
                continue
            out[name] = (p, st[2])
            for k in kin.get(p, []):
                w = rd("/proc/%d/cmdline" % k).split(b"\0"); base = os.path.basename(w[0])
                try:                                       # a kernel may call itself anything, in its own namespace
                    if os.readlink("/proc/%d/ns/pid" % k) != os.readlink("/proc/%d/ns/pid" % pid):
                        continue
                except OSError:
                    continue
                if base == b"holdcell-launcher" and name == "server":
                    todo.append((k, "launcher"))
                elif base == b"holdcell" and w[1:2] == [b"gateway"]:
                    todo.append((k, "gateway"))
        return out

    @staticmethod
    def addrs():
        "addresses of this host which are not loopback"
        out = []
        try:
            import fcntl, struct
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            for _, n in socket.if_nameindex():
                try:
                    a = socket.inet_ntoa(fcntl.ioctl(s, 0x8915, struct.pack("256s", n.encode()))[20:24])
                    if not a.startswith("127."):
                        out.append(a)
                except OSError:
                    pass
        except OSError:
            pass
        return out

    def kill_comm(self, name):
        for p in self.by_comm(name):
            try:
                os.kill(p, 9)
            except OSError:
                pass

    def close(self):
        self.stop = True
        for p in self.procs:
            if p.poll() is None:
                try:
                    os.killpg(p.pid, 9)
                except OSError:
                    pass
                p.wait()
        for s, a in self.socks:
            s.close()
            if isinstance(a, str) and a[:1] == "/" and os.path.lexists(a):
                os.unlink(a)
        shutil.rmtree(self.dir, ignore_errors=True)
        os.unlink(self.rootfile)
