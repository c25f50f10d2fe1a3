"""kill -9 of the gateway at any moment: kernels live on, the same client gets the rest of
its cells or is told what it missed, and nothing says ok that the kernel did not say."""

import collections
import os
import random
import signal
import time

import pytest
import websocket

from channels import Channels, Ended
from server import DEADLINE, Server, wait_for
from test_metrics import Metrics

GAP = "the gateway was restarted"
LINES = 40


def kill_gateway(s):
    old = s.process("gateway")
    assert old
    os.kill(old, signal.SIGKILL)
    return old


def reconnect(s, kid, sid, **kw):
    """As a client that tries again; connections wait in the backlog meanwhile."""
    end = time.monotonic() + DEADLINE
    while True:
        try:
            return Channels(s, kid, sid, **kw)
        except (OSError, websocket.WebSocketException) as e:
            if time.monotonic() > end:
                raise AssertionError(f"no connection: {e!r}") from e
            time.sleep(0.05)


def drain(c):
    """What still comes on a connection that is dying."""
    got = []
    try:
        while True:
            got.append(c.recv(5))
    except (Ended, TimeoutError):
        return got


class Story:
    """What one client saw of one cell, over all its connections."""

    def __init__(self, msg_id):
        self.id, self.text, self.err = msg_id, "", ""
        self.replies, self.idles, self.order = [], 0, []

    def take(self, m):
        if (m.get("parent_header") or {}).get("msg_id") != self.id:
            return self
        kind = m["header"]["msg_type"]
        self.order.append(kind)
        if kind == "stream":
            if m["content"]["name"] == "stdout":
                self.text += m["content"]["text"]
            else:
                self.err += m["content"]["text"]
        elif kind == "execute_reply":
            self.replies.append(m)
        elif kind == "status" and m["content"]["execution_state"] == "idle":
            self.idles += 1
        return self

    @property
    def ended(self):
        return bool(self.replies) and self.idles > 0

    @property
    def status(self):
        return self.replies[0]["content"]["status"] if self.replies else None

    @property
    def synthetic(self):
        return bool(self.replies) and "holdcell" in self.replies[0]["metadata"]


def follow(c, story, timeout=DEADLINE):
    end = time.monotonic() + timeout
    while not story.ended:
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"no end: {story.order[-10:]} {story.err}")
        story.take(c.recv(left))
    return story


def follow_all(c, stories):
    end = time.monotonic() + DEADLINE
    while not all(x.ended for x in stories):
        assert time.monotonic() < end, [x.order for x in stories if not x.ended]
        m = c.recv()
        for x in stories:
            x.take(m)


def take_until(c, story, text):
    while text not in story.text:
        story.take(c.recv())


def with_kernel(s, name="python3", code="0"):
    """A kernel that has answered: (its id, a socket to it)."""
    kid = s.start_kernel(name)
    c = Channels(s, kid)
    assert c.run(code).status == "ok"
    return kid, c


def until_it_runs(c):
    c.until(lambda m: m["header"]["msg_type"] == "execute_input")


def until_asked(c):
    return c.until(lambda m: m["header"]["msg_type"] == "input_request")


def answer(c, ask, value):
    c.send("input_reply", {"value": value}, "stdin", ask["header"])


def kill_and_come_back(s, kid, c, *stories):
    """Takes what was on its way to the client, then gives its next socket."""
    kill_gateway(s)
    for m in drain(c):
        for x in stories:
            x.take(m)
    return reconnect(s, kid, c.sid)


def replace_gateway(s):
    s.wait_next("gateway", kill_gateway(s))


def until_sent(s, requests):
    """Until the kernels were sent so many. What the gateway still holds, because the launcher has not
    got its note, goes with it, and nobody tells its end."""
    wait_for(lambda: Metrics(s)("kernel_messages_total", channel="shell", direction="to_kernel") >= requests)


def marker(c, name):
    """What the kernel itself knows of that cell."""
    return c.run(f"globals().get({name!r})").result


def slow_cell(name, lines, pause):
    return (f"import time\n{name} = 'begun'\nfor i in range({lines}):\n    print('line', i, flush=True)\n"
            f"    time.sleep({pause})\n{name} = 'done'")


@pytest.mark.full
@pytest.mark.parametrize("v1", [False, True], ids=["legacy", "v1"])
def test_a_long_cell_goes_on_for_the_client_that_comes_back(server_with, v1):
    """A cell of 20 s, the gateway killed in the middle of it."""
    s = server_with()
    kid = s.start_kernel("python3")
    c = Channels(s, kid, v1=v1)
    story = Story(c.start(slow_cell("m", LINES, 20 / LINES)))
    take_until(c, story, f"line {LINES // 2}\n")
    kill_gateway(s)
    for m in drain(c):
        story.take(m)
    before = story.text.count("line")
    c = reconnect(s, kid, c.sid, v1=v1)
    assert s.kernel(kid)["execution_state"] == "busy"
    follow(c, story)
    assert story.status == "ok" and not story.synthetic and len(story.replies) == 1
    assert GAP in story.err and story.err.count(GAP) == 1
    seen = [int(x.split()[1]) for x in story.text.splitlines()]
    assert seen == sorted(set(seen)), "lines are in order and none came twice"
    assert len(seen) > before and seen[-1] == LINES - 1
    assert marker(c, "m") == "'done'"
    assert s.wait_state(kid, "idle")
    c.close()


@pytest.mark.full
def test_without_any_client_the_state_follows_the_cell(server_with):
    s = server_with()
    kid, c = with_kernel(s)
    msg_id = c.start("import time; time.sleep(6)")
    until_it_runs(c)
    began = time.monotonic()
    replace_gateway(s)
    states = []
    while time.monotonic() - began < 4:
        states.append(s.kernel(kid)["execution_state"])
        time.sleep(0.2)
    assert set(states) == {"busy"}
    s.wait_state(kid, "idle")
    c2 = reconnect(s, kid, c.sid)               # what it is told waits for it
    story = follow(c2, Story(msg_id))
    assert story.status == "ok" and not story.synthetic
    c2.close()


def test_a_cell_that_ended_meanwhile_is_told_as_lost_and_not_as_ok(server_with):
    s = server_with()
    kid, c = with_kernel(s)
    launcher = s.process("launcher")
    story = Story(c.start("import time; time.sleep(1.5); m = 'done'"))
    until_it_runs(c)
    os.kill(launcher, signal.SIGSTOP)           # nobody starts a gateway until the cell is over
    try:
        kill_gateway(s)
        time.sleep(3)
    finally:
        os.kill(launcher, signal.SIGCONT)
    c = reconnect(s, kid, c.sid)
    follow(c, story)
    assert story.status == "error" and story.synthetic
    assert story.replies[0]["content"]["ename"] == "RunLost"
    assert GAP in story.err
    assert marker(c, "m") == "'done'"           # the kernel ran it: only its end was not seen
    c.close()


@pytest.mark.parametrize("noted", [False, True])
def test_a_question_survives(server_with, noted):
    s = server_with()
    kid = s.start_kernel("python3")
    c = Channels(s, kid)
    story = Story(c.start("print('got', input('name? '))", allow_stdin=True))
    ask = until_asked(c)
    if noted:
        time.sleep(0.3)                         # the note says that the client has it
    c = kill_and_come_back(s, kid, c, story)
    answer(c, ask, "Ada")
    follow(c, story)
    assert story.status == "ok" and not story.synthetic
    assert "got Ada" in story.text
    c.close()


def test_a_question_that_its_client_had_not_got_is_asked_again(server_with):
    s = server_with()
    kid, c = with_kernel(s)
    story = Story(c.start("import time; time.sleep(1); print('got', input('name? '))", allow_stdin=True))
    until_it_runs(c)
    c.close()                                   # before it asks
    time.sleep(2)
    replace_gateway(s)
    c = reconnect(s, kid, c.sid)
    ask = until_asked(c)
    assert ask["content"]["prompt"] == "name? "
    answer(c, ask, "Ada")
    follow(c, story)
    assert story.status == "ok" and "got Ada" in story.text
    c.close()


@pytest.mark.full
def test_cells_that_wait_their_turn_are_run_and_told(server_with):
    s = server_with()
    kid, c = with_kernel(s)
    first = Story(c.start(slow_cell("m", 30, 0.2)))     # a server that comes back late finds them still waiting
    others = [Story(c.start(f"print('cell', {i})")) for i in range(20)]
    take_until(c, first, "line 1\n")
    until_sent(s, 1 + 1 + len(others))
    c = kill_and_come_back(s, kid, c, first, *others)
    follow_all(c, [first, *others])
    assert first.status == "ok"
    for i, x in enumerate(others):
        assert x.status == "ok" and x.text == f"cell {i}\n" and x.err == "", (i, x.status, x.err)
    c.close()


def test_a_client_that_was_away_learns_that_an_end_is_lost(server_with):
    s = server_with()
    kid, c = with_kernel(s)
    story = Story(c.start("import time; time.sleep(0.5); print('unseen')"))
    until_it_runs(c)
    c.close()
    s.wait_state(kid, "idle")                   # its reply waits in the log, for nobody
    time.sleep(0.5)
    replace_gateway(s)
    c = reconnect(s, kid, c.sid)
    follow(c, story)
    assert story.status == "error" and story.synthetic and GAP in story.err
    assert c.run("1").result == "1"
    c.close()


@pytest.mark.full
def test_another_session_id_gets_nothing_of_it(server_with):
    s = server_with()
    kid = s.start_kernel("python3")
    c = Channels(s, kid)
    msg_id = c.start("import time; time.sleep(3)")
    until_it_runs(c)
    kill_gateway(s)
    drain(c)
    with reconnect(s, kid, None) as other:
        assert other.run("1", timeout=DEADLINE).result == "1"
        assert not any(m["header"]["msg_type"] == "execute_reply" and m["parent_header"]["msg_id"] == msg_id
                       for m in other.seen)


@pytest.mark.full
def test_twice_in_one_cell(server_with):
    s = server_with()
    kid = s.start_kernel("python3")
    c = Channels(s, kid)
    story = Story(c.start(slow_cell("m", 60, 0.1)))
    for stop in (5, 30):
        take_until(c, story, f"line {stop}\n")
        c = kill_and_come_back(s, kid, c, story)
    follow(c, story)
    assert story.status == "ok" and not story.synthetic and "line 59" in story.text
    assert story.err.count(GAP) == 2
    c.close()


# --- kernels of others ----------------------------------------------------------

@pytest.fixture
def scripted(server_with, kernel_path):
    """A server with the kernel on czmq: one thread, PUB, ROUTERs without handover."""
    kernel_path.add_scripted()
    s = server_with("--kernel-path", kernel_path.path)
    return s, s.start_kernel("scripted")


@pytest.mark.full
def test_a_foreign_kernel_goes_on_and_every_cell_has_a_true_end(scripted):
    s, kid = scripted
    c = Channels(s, kid)
    assert c.run("result 1").status == "ok"
    first = Story(c.start("print a\nsleep 3000\nprint b"))
    others = [Story(c.start(f"print {i}")) for i in range(5)]
    take_until(c, first, "a\n")
    until_sent(s, 1 + 1 + len(others))
    stories = [first, *others]
    c = kill_and_come_back(s, kid, c, *stories)
    follow_all(c, stories)
    assert first.text == "a\nb\n" and GAP in first.err
    assert [x.text for x in others] == [f"{i}\n" for i in range(5)]
    print("foreign:", [(x.status, x.synthetic) for x in stories])
    for x in stories:       # such a kernel may have dropped replies to the peer that died: then it says so
        assert (x.status == "ok") == (not x.synthetic)
        assert x.status == "ok" or x.replies[0]["content"]["ename"] == "RunLost"
    # And no socket of this client is deaf.
    for i in range(5):
        assert c.run(f"result {i}").result == str(i)
    s.wait_state(kid, "idle")
    c.close()


def test_a_question_of_a_foreign_kernel_survives(scripted):
    s, kid = scripted
    c = Channels(s, kid)
    assert c.run("result 0").status == "ok"
    story = Story(c.start("input name?\nprint end", allow_stdin=True))
    ask = until_asked(c)
    c = kill_and_come_back(s, kid, c, story)
    answer(c, ask, "Ada")
    follow(c, story)
    print("foreign:", story.status, story.synthetic)
    assert story.text == "Ada\nend\n"
    assert (story.status == "ok") == (not story.synthetic)
    assert c.run("result 7").result == "7"
    c.close()


def test_the_same_client_may_come_and_go_at_a_foreign_kernel(scripted):
    s, kid = scripted
    sid = None
    for i in range(50):
        c = Channels(s, kid, sid)
        sid = c.sid
        assert c.run(f"result {i}").result == str(i)
        c.close()


# --- at any moment ----------------------------------------------------------------

def one_round(s, kid, c, rng, n, tally):
    """One cell, one death of the gateway at some moment. Returns the new connection."""
    name = f"r{n}"
    kind = rng.choice(["long", "short", "input"])
    if kind == "long":
        msg_id = c.start(slow_cell(name, 40, 0.05))
        delay = rng.uniform(0, 2.3)
    elif kind == "short":
        msg_id = c.start(f"{name} = 'begun'\nprint('line 0')\n{name} = 'done'")
        delay = rng.choice([0, 0, rng.uniform(0, 0.02)])
    else:
        msg_id = c.start(f"{name} = 'begun'\nv = input('? ')\n{name} = 'done'", allow_stdin=True)
        delay = rng.uniform(0, 0.1)
    story = Story(msg_id)
    asked = None
    end = time.monotonic() + delay
    while time.monotonic() < end:
        try:
            m = c.recv(max(0.001, end - time.monotonic()))
        except TimeoutError:
            break
        story.take(m)
        if m["header"]["msg_type"] == "input_request":
            asked = m
    kill_gateway(s)
    for m in drain(c):
        story.take(m)
        if m["header"]["msg_type"] == "input_request":
            asked = m
    before = story.ended
    c = reconnect(s, kid, c.sid)
    if kind == "input" and not before:
        # Nobody knows whether the question was given: who has it answers, who has not is asked.
        if asked is None:
            c.ws.settimeout(3)
            try:
                while asked is None and not story.ended:
                    m = c.recv(3)
                    story.take(m)
                    if m["header"]["msg_type"] == "input_request":
                        asked = m
            except TimeoutError:
                pass
        if asked is not None:
            answer(c, asked, "x")
    if kind == "input" and not before and asked is None and story.order and not story.ended:
        # The kernel asked while there was no gateway: its client is told what to do.
        while "an interrupt ends the cell" not in story.err:
            story.take(c.recv())
        assert s.interrupt(kid) == 204
        follow(c, story)
        assert story.status == "error" and not story.synthetic and GAP in story.err
        s.wait_state(kid, "idle")
        tally[kind, "question lost"] += 1
        return c
    if not before:
        try:
            follow(c, story, 8)
        except TimeoutError:
            # Then the request never reached a gateway: the kernel knows nothing of it.
            assert not story.order, (kind, story.order, story.err)
            s.wait_state(kid, "idle")
            assert marker(c, name) is None
            tally[kind, "never taken"] += 1
            return c
    assert s.wait_state(kid, "idle")
    state = marker(c, name)
    if story.status == "ok":
        assert not story.synthetic and state == "'done'", (story.order, state)
        tally[kind, "ok before" if before else "ok"] += 1
    else:
        assert story.synthetic and GAP in story.err, (story.order, story.err)
        tally[kind, "lost"] += 1
    return c


def kill_at_random(rounds, seed):
    """On servers of a few deaths each: after more a gateway is started after a pause only."""
    rng = random.Random(seed)
    tally = collections.Counter()
    for first in range(0, rounds, 4):
        s = Server().start()
        try:
            kid, c = with_kernel(s)
            for n in range(first, min(first + 4, rounds)):
                c = one_round(s, kid, c, rng, n, tally)
            c.close()
        finally:
            s.close()
    print("seed", seed, "outcomes:", {" ".join(k): v for k, v in sorted(tally.items())})
    assert sum(tally.values()) == rounds
    return tally


def test_killed_at_random_moments_a_few_times():
    kill_at_random(4, 1)


@pytest.mark.full
def test_killed_at_random_moments_many_times():
    tally = kill_at_random(int(os.environ.get("HOLDCELL_KILLS", "150")), random.randrange(1 << 30))
    assert tally["long", "ok"] > 0
