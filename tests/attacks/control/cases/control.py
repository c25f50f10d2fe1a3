"""No attacks: what the battery itself must see. The suite `attacks` runs them on a server of their own and demands these
verdicts: a process of the server that dies during a case is BROKEN, although another takes its place."""
from hcattack import *

G = "control"


def kill(c, name):
    pid = c.server[name][0]
    os.kill(pid, signal.SIGKILL)
    end = time.time() + 60 * Pace.slow
    while c.host.server(c.pid).get(name, (pid,))[0] == pid and time.time() < end:
        if name == "server" and not c.host.server(c.pid):
            break
        time.sleep(0.05)
    return held("%s %d is killed" % (name, pid))


@case("CT01", G, "nothing at all", "HELD")
def _(c):
    return held("all three are there") if set(c.server) == {"server", "launcher", "gateway"} else cant(c.server)


@case("CT02", G, "the gateway dies and has a successor", "BROKEN: the gateway was replaced")
def _(c):
    return kill(c, "gateway")


@case("CT03", G, "the launcher dies and has a successor", "BROKEN: launcher and gateway were replaced")
def _(c):
    return kill(c, "launcher")


@case("CT04", G, "nothing at all, after that", "HELD")
def _(c):
    return held("all three are there") if set(c.server) == {"server", "launcher", "gateway"} else cant(c.server)


@case("CT05", G, "the supervisor dies", "BROKEN: all died")
def _(c):
    return kill(c, "server")
