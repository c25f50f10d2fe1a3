"""Client of the gateway under attack: sessions, cells and what came back."""
import base64, json, random, sys, threading, time, uuid
import http.client, urllib.parse
import websocket                      # Python package websocket-client

from hcprelude import *
from hcverdict import *


def sub(m, key):
    "an object inside a message; a forged one may hold anything there"
    v = m.get(key)
    return v if isinstance(v, dict) else {}


class Result:
    def __init__(self):
        self.text = ""; self.data = {}; self.error = None; self.reply = None; self.msgs = []
        self.status = "timeout"; self.elapsed = 0.0; self.value = None; self.bytes = 0

    def __repr__(self):
        return "<%s err=%s data=%s>" % (self.status, self.error, str(self.data)[:200])


class Session:
    def __init__(self, gw, kid):
        self.gw, self.kid = gw, kid
        self.sid = uuid.uuid4().hex
        self.cv = threading.Condition(); self.msgs = []; self.closed = False; self.dead = None; self.lost = False
        self.connect()

    def connect(self):
        u = self.gw.wsbase + "/api/kernels/%s/channels?session_id=%s" % (self.kid, self.sid)
        hd = ["Authorization: token " + self.gw.token] if self.gw.token else []
        self.ws = websocket.create_connection(u, header=hd, timeout=30 * Pace.slow)
        self.ws.settimeout(None)
        self.closed = False
        self.th = threading.Thread(target=self._read, args=(self.ws,), daemon=True); self.th.start()

    def _read(self, ws):
        try:
            while True:
                op, d = ws.recv_data()
                if op == 8:
                    break
                if op == 2 and len(d) >= 4:                 # legacy binary: offsets, then JSON first
                    n = int.from_bytes(d[:4], "big"); off = int.from_bytes(d[4:8], "big")
                    end = int.from_bytes(d[8:12], "big") if n > 1 else len(d)
                    d = d[off:end]
                try:
                    m = json.loads(d)
                except Exception:
                    m = {"header": {"msg_type": "_unparsable"}, "raw": d[:200]}
                if not isinstance(m, dict):
                    m = {"header": {"msg_type": "_unparsable"}, "raw": d[:200]}
                m["_n"] = len(d); m["_t"] = time.monotonic()
                with self.cv:
                    self.msgs.append(m)
                    if sub(m, "header").get("msg_type") == "status" and sub(m, "content").get("execution_state") in ("restarting", "autorestarting", "dead"):
                        self.dead = m["content"]["execution_state"]
                    self.cv.notify_all()
        except Exception:
            pass
        with self.cv:
            if ws is self.ws:
                self.closed = True
            self.cv.notify_all()

    def send(self, mtype, content, channel="shell", parent=None, msg_id=None):
        mid = msg_id or uuid.uuid4().hex
        m = {"header": {"msg_id": mid, "username": "atk", "session": self.sid, "msg_type": mtype, "version": "5.3",
                        "date": time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())},
             "parent_header": parent or {}, "metadata": {}, "content": content, "channel": channel, "buffers": []}
        self.ws.send(json.dumps(m))
        return mid

    def start(self, code, allow_stdin=False, silent=False):
        with self.cv:
            mark = len(self.msgs)
            self.dead = None
        mid = self.send("execute_request", {"code": code, "silent": silent, "store_history": False, "user_expressions": {},
                                            "allow_stdin": allow_stdin, "stop_on_error": False})
        return mid, mark

    def wait(self, mid, mark, timeout, stop_on_dead=True):
        timeout *= Pace.slow
        r = Result(); t0 = time.monotonic(); i = mark; idle = False
        with self.cv:
            while True:
                while i < len(self.msgs):
                    m = self.msgs[i]; i += 1
                    if sub(m, "parent_header").get("msg_id") != mid:
                        continue
                    r.msgs.append(m); r.bytes += m["_n"]
                    t = sub(m, "header").get("msg_type"); c = sub(m, "content")
                    if t == "stream":
                        more = c.get("text")            # anything, where the kernel forged it: NaN, null, a list
                        r.text += more if isinstance(more, str) and len(r.text) < 4 << 20 else ""
                    elif t == "execute_result":
                        r.value = sub(c, "data").get("text/plain")
                    elif t == "error":
                        r.error = (c.get("ename"), c.get("evalue"))
                    elif t == "status" and c.get("execution_state") == "idle":
                        idle = True
                    elif t == "execute_reply" and r.reply is None:
                        r.reply = c
                if idle and r.reply is not None:
                    r.status = r.reply.get("status", "?"); break
                if self.dead and stop_on_dead:
                    r.status = "dead"; break
                if self.closed:
                    r.status = "closed"; break
                left = timeout - (time.monotonic() - t0)
                if left <= 0:
                    break
                self.cv.wait(min(left, 0.5))
        r.elapsed = time.monotonic() - t0
        for ln in r.text.split("\n"):
            if ln.startswith("@@ATK@@"):
                try:
                    r.data.update(json.loads(ln[7:]))
                except Exception:
                    pass
        return r

    def wrap(self, code, params):
        blob = base64.b64encode(zlib.compress(json.dumps([code, params]).encode())).decode()
        return ("import sys,types,zlib,base64,json\n"
                "if '_a' not in sys.modules:\n"
                " _m=types.ModuleType('_a'); exec(zlib.decompress(base64.b64decode('%s')).decode(),_m.__dict__); sys.modules['_a']=_m\n"
                "_c,_p=json.loads(zlib.decompress(base64.b64decode('%s')))\n"
                "exec(compile(_c,'<attack>','exec'),dict(sys.modules['_a'].__dict__,P=_p,KEEP=sys.modules['_a'].KEEP))\n" % (PRELUDE64, blob))

    def cell(self, code, timeout=20, must=True, stop_on_dead=True, **params):
        "run attack code; with must=True an exception or a missing report raises Skip"
        mid, mark = self.start(self.wrap(code, params))
        r = self.wait(mid, mark, timeout, stop_on_dead)
        if must and (r.error or not r.data):
            raise Skip("attack code did not report: %s %s" % (r.status, r.error))
        return r

    def plain(self, code, timeout=20, **k):
        mid, mark = self.start(code, **k)
        return self.wait(mid, mark, timeout)

    def answers(self, timeout=5):
        a, b = random.randint(100, 999), random.randint(100, 999)
        try:
            r = self.plain("%d*%d" % (a, b), timeout)
        except Exception:
            return None
        return r.elapsed if r.value == str(a * b) else None

    def foreign(self, pred, mark=0, wait=2.0):
        "first message since mark for which pred is true"
        end = time.monotonic() + wait * Pace.slow
        with self.cv:
            i = mark
            while True:
                while i < len(self.msgs):
                    if pred(self.msgs[i]):
                        return self.msgs[i]
                    i += 1
                if time.monotonic() > end:
                    return None
                self.cv.wait(0.2)

    def interrupt(self):
        return self.gw.http("POST", "/api/kernels/%s/interrupt" % self.kid)[0]

    def restart(self):
        return self.gw.http("POST", "/api/kernels/%s/restart" % self.kid, timeout=40)[0]

    def model(self):
        st, _, b = self.gw.http("GET", "/api/kernels/" + self.kid)
        try:
            return st, json.loads(b)
        except Exception:
            return st, {}

    def delete(self, timeout=25):
        try:
            self.ws.close()
        except Exception:
            pass
        try:
            return self.gw.http("DELETE", "/api/kernels/" + self.kid, timeout=timeout)[0]
        except Exception as e:
            return "delete failed: %r" % e


class Gateway:
    def __init__(self, url, token, kernel=None):
        p = urllib.parse.urlparse(url.rstrip("/"))
        self.host, self.port, self.prefix = p.hostname, p.port or 80, p.path
        if not (self.host == "localhost" or self.host.startswith("127.") or self.host == "::1"):
            print("the battery attacks only a gateway on a loopback address", file=sys.stderr)
            raise SystemExit(2)
        self.token, self.kernel = token, kernel
        self.wsbase = "ws://%s:%d%s" % (self.host, self.port, self.prefix)

    def http(self, method, path, body=None, timeout=15, headers=None):
        c = http.client.HTTPConnection(self.host, self.port, timeout=timeout * Pace.slow)
        h = {"Content-Type": "application/json"}
        if self.token:
            h["Authorization"] = "token " + self.token
        h.update(headers or {})
        c.request(method, self.prefix + path, body=None if body is None else json.dumps(body), headers=h)
        r = c.getresponse(); b = r.read(); c.close()
        return r.status, dict((k.lower(), v) for k, v in r.getheaders()), b

    def new(self):
        last = None
        for _ in range(2):
            st, _, b = self.http("POST", "/api/kernels", {"name": self.kernel} if self.kernel else {}, timeout=60)
            if st in (200, 201):
                s = Session(self, json.loads(b)["id"])
                end = time.time() + 40 * Pace.slow
                while time.time() < end:
                    if s.answers(10) is not None:
                        return s
                    time.sleep(0.3)
                s.delete(); last = "kernel never answered"
            else:
                last = "POST /api/kernels -> %s %s" % (st, b[:200])
        raise Skip("no session: %s" % last)

    def alive(self):
        t = time.monotonic()
        try:
            st, _, _ = self.http("GET", "/api", timeout=8)
        except Exception:
            return None
        return time.monotonic() - t if st == 200 else None
