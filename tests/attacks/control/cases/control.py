"""No attacks: what the battery itself must see. The suite `attacks` runs them on a server of their own and demands these
verdicts: a process of the server that dies during a case is BROKEN, although another takes its place, and one that takes
memory is seen to grow, although it gives it back."""
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


def injector(c):
    "tests/tools/inject.c, which puts system calls into other processes"
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "tools", "inject.c")
    out = os.path.join(c.host.dir, "inject")
    if not os.path.exists(out):
        p = subprocess.run(["cc", "-D_GNU_SOURCE", "-std=gnu17", "-O1", "-o", out, source], capture_output=True)
        if p.returncode:
            raise Skip("inject does not compile: %s" % p.stderr[-200:])
    return out


def grow(c, name):
    "one takes 64 MB and gives them back, as in an attack; judged as in an attack"
    def call(*words):
        p = subprocess.run([injector(c), str(c.server[name][0]), *map(str, words)], capture_output=True, text=True, timeout=60 * Pace.slow)
        m = re.match(r"= (-?\d+)", p.stdout)
        if not m or -4096 < int(m.group(1)) < 0:
            raise Skip("%s: %s %s" % (name, p.stdout, p.stderr))
        return int(m.group(1))
    grown = c.growth(); size = 64 << 20
    at = call(9, 0, size, 3, 0x8022, -1, 0)                # mmap, private and of no file, filled at once
    call(11, at, size)
    return broken(grown) if grown.look() > 48 else held(grown)


@case("CT02", G, "the gateway takes 64 MB and gives them back", "BROKEN: the gateway grew")
def _(c):
    return grow(c, "gateway")


@case("CT03", G, "the launcher takes 64 MB and gives them back", "BROKEN: the launcher grew")
def _(c):
    return grow(c, "launcher")


@case("CT04", G, "the supervisor takes 64 MB and gives them back", "BROKEN: the supervisor grew")
def _(c):
    return grow(c, "server")


@case("CT05", G, "the gateway dies and has a successor", "BROKEN: the gateway was replaced")
def _(c):
    return kill(c, "gateway")


@case("CT06", G, "the launcher dies and has a successor", "BROKEN: launcher and gateway were replaced")
def _(c):
    return kill(c, "launcher")


@case("CT07", G, "nothing at all, after that", "HELD")
def _(c):
    return held("all three are there") if set(c.server) == {"server", "launcher", "gateway"} else cant(c.server)


@case("CT08", G, "the supervisor dies", "BROKEN: all died")
def _(c):
    return kill(c, "server")
