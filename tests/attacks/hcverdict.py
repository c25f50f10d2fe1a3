"""Verdicts of the attack battery, and how the results of probes become one."""
import errno, signal

HELD, BROKEN, CANT = "HELD", "BROKEN", "CANNOT TELL"


class Pace:
    "how much slower than usual the machine is (--slow): every wait for an answer is as much longer"
    slow = 1.0


class Verdict:
    def __init__(self, kind, why=""):
        self.kind, self.why = kind, str(why)[:300]


def held(why=""): return Verdict(HELD, why)
def broken(why=""): return Verdict(BROKEN, why)
def cant(why=""): return Verdict(CANT, why)


class Skip(Exception):
    "raised by a case which cannot be decided; the text is the reason"


# errnos which count as a refusal by the walls; anything else is CANNOT TELL
REFUSED = {getattr(errno, n) for n in (
    "EPERM EACCES ENOSYS ENOENT EROFS EXDEV ESRCH ENODEV ENXIO EAFNOSUPPORT EOPNOTSUPP EPROTONOSUPPORT "
    "ESOCKTNOSUPPORT ENETUNREACH EHOSTUNREACH ECONNREFUSED ENETDOWN ENOTTY ELOOP EPROTOTYPE EAGAIN ENOTDIR").split()}


def ename(e):
    return errno.errorcode.get(e, str(e)) if isinstance(e, int) else str(e)


def judge(d, held_errnos=REFUSED, also=()):
    """d: probe name -> {'ok':bool,'errno':n,'sig':n}. One success is BROKEN, all refused is HELD."""
    if not isinstance(d, dict) or not d:
        return cant("no probe result came back")
    ok = [k for k, v in d.items() if v.get("ok")]
    if ok:
        return broken("got through: " + ", ".join("%s%s" % (k, "=" + str(d[k].get("val"))[:60] if d[k].get("val") is not None else "") for k in ok))
    good = set(held_errnos) | {getattr(errno, a) for a in also}
    odd = [k for k, v in d.items() if not (v.get("sig") == signal.SIGSYS or v.get("errno") in good or v.get("refused"))]
    if odd:
        return cant("neither refused nor through: " + ", ".join("%s:%s" % (k, d[k]) for k in odd))
    return held("; ".join("%s %s" % (k, "SIGSYS" if v.get("sig") else v.get("refused") or ename(v.get("errno"))) for k, v in d.items()))
