"""More cells than anybody types, at one kernel whose gateway ends: all of them have an end that is told."""

import pytest

from channels import Channels
from server import wait_for
from test_gateway_restart import (Story, drain, follow, follow_all, kill_gateway, reconnect, replace_gateway, slow_cell,
                                  until_asked, until_it_runs, until_sent, with_kernel)

MANY = 400                # what a note alone has no room for
OPEN_MAX = 1024           # requests of one client that a kernel is sent: QUERIES_SEAT_MAX


class Stories(dict):
    """Many, by msg_id."""

    @property
    def first(self):
        return next(iter(self.values()))

    def start(self, c, code):
        story = Story(c.start(code))
        self[story.id] = story

    def take(self, m):
        story = self.get((m.get("parent_header") or {}).get("msg_id"))
        if story is not None:
            story.take(m)

    def follow(self, c):
        while not all(x.ended for x in self.values()):
            self.take(c.recv())

    def check(self):
        """Each ended once, and nothing says ok but what ran."""
        for x in self.values():
            assert len(x.replies) == 1 and x.idles == 1, (x.order, x.err)
            assert x.status == "ok" or x.replies[0]["content"]["ename"] == "RunLost", x.replies


def queue(c):
    """A cell that works for a while, and many behind it."""
    all_of_them = Stories()
    all_of_them.start(c, slow_cell("m", 30, 0.2))
    for i in range(MANY):
        all_of_them.start(c, f"print('cell', {i})")
    return all_of_them


@pytest.mark.full
def test_each_of_hundreds_that_wait_has_its_end_when_the_gateway_is_killed(server_with):
    s = server_with()
    kid, c = with_kernel(s)
    stories = queue(c)
    until_sent(s, 1 + 1 + MANY)
    kill_gateway(s)
    for m in drain(c):
        stories.take(m)
    c = reconnect(s, kid, c.sid)
    stories.follow(c)
    stories.check()
    texts = [x.text for x in stories.values()][1:]
    assert texts == [f"cell {i}\n" for i in range(MANY)], "they were with the kernel: all of them ran"
    # Those that ZMQ had not given the kernel yet when it heard of the new gateway are answered to nobody (STATES.md).
    assert stories.first.status == "ok"
    assert "note_failed" not in s.log()
    c.close()


@pytest.mark.full
def test_hundreds_of_one_client_push_nobody_else_out(server_with):
    s = server_with()
    kid, c = with_kernel(s)
    other = Channels(s, kid)
    assert other.run("0").status == "ok"
    stories = queue(c)
    mine = Story(other.start("print('mine')"))
    until_sent(s, 2 + 1 + MANY + 1)
    kill_gateway(s)
    for m in drain(c):
        stories.take(m)
    for m in drain(other):
        mine.take(m)
    c, other = reconnect(s, kid, c.sid), reconnect(s, kid, other.sid)
    follow_all(other, [mine])
    assert mine.text == "mine\n" and len(mine.replies) == 1
    stories.follow(c)
    stories.check()
    c.close()
    other.close()


@pytest.mark.full
@pytest.mark.parametrize("gateways", [1, 2])
def test_ends_that_a_client_had_not_seen_are_told_by_whatever_gateway_it_comes_back_to(server_with, gateways):
    s = server_with()
    kid, c = with_kernel(s)
    stories = Stories()
    stories.start(c, "import time; time.sleep(1)")
    until_it_runs(c)
    for i in range(MANY):
        stories.start(c, f"m = {i}")
    until_sent(s, 1 + 1 + MANY)
    c.close()
    with Channels(s, kid) as other:
        wait_for(lambda: other.run("m").result == str(MANY - 1))
    for _ in range(gateways):
        replace_gateway(s)
        s.wait_state(kid, "idle")
    c = reconnect(s, kid, c.sid)
    stories.follow(c)
    stories.check()
    assert {x.status for x in stories.values()} == {"error"}, "nobody has heard that they were ok"
    c.close()


@pytest.mark.full
def test_whoever_has_none_is_let_in_when_a_kernel_has_all_the_cells_that_it_may_have(server_with):
    s = server_with()
    kid, first = with_kernel(s)
    gate = Story(first.start("import time\ntry: time.sleep(1000)\nexcept KeyboardInterrupt: pass"))
    until_it_runs(first)
    crowd = [Channels(s, kid) for _ in range(5)]
    theirs = [Stories() for _ in crowd]
    for c, stories in zip(crowd, theirs):
        for i in range(1000):               # 5,000 of them: more than the 4,096 that a kernel has room for
            stories.start(c, "pass")
    late = Channels(s, kid)
    mine = Story(late.start("'mine'"))
    until_sent(s, 1 + 4096)
    s.interrupt(kid)
    follow_all(late, [mine])
    assert mine.status == "ok", (mine.err, mine.replies, s.log()[-2500:])
    for c, stories in zip(crowd, theirs):
        stories.follow(c)
        assert {x.status for x in stories.values()} == {"ok"}
    follow_all(first, [gate])
    for c in [first, late, *crowd]:
        c.close()


# --- replies that are far behind their idles --------------------------------------------

@pytest.mark.full
def test_a_reply_that_comes_seconds_late_behind_others_is_taken(server_with, kernel_path):
    s = server_with("--kernel-path", kernel_path.add_scripted().path)
    kid, c = with_kernel(s, "scripted", "print up")
    with Channels(s, kid) as other:
        stories, mine = Stories(), Stories()
        stories.start(c, "late 8 600")
        for i in range(6):
            stories.start(c, f"print {i}")
        until_sent(s, 1 + 7)
        mine.start(other, "print mine")             # its reply is the last of all
        stories.follow(c)
        mine.follow(other)
    assert {x.status for x in [*stories.values(), *mine.values()]} == {"ok"}, "all of them came, 600 ms apart"
    assert c.run("print still").text == "still\n"
    c.close()



# --- cells that wait in the gateway -----------------------------------------------------

def filled_up(s):
    """A kernel with an endless cell and so many behind it that the gateway keeps some of them."""
    kid, c = with_kernel(s)
    stories = Stories()
    stories.start(c, "import time\nwhile True: time.sleep(0.1)")
    until_it_runs(c)
    for _ in range(OPEN_MAX + 50):
        stories.start(c, "pass")
    until_sent(s, 1 + OPEN_MAX)
    return kid, c, stories


@pytest.mark.full
def test_what_a_client_sends_on_control_does_not_wait_behind_its_cells(server_with):
    s = server_with()
    _, c, stories = filled_up(s)
    c.send("interrupt_request", {}, "control")
    stories.follow(c)
    assert stories.first.replies[0]["content"]["ename"] == "KeyboardInterrupt"
    assert {x.status for x in list(stories.values())[1:]} == {"ok"}
    c.close()


@pytest.mark.full
def test_cells_that_the_gateway_kept_end_with_a_restart_like_those_that_the_kernel_had(server_with):
    s = server_with()
    kid, c, stories = filled_up(s)
    assert s.restart(kid).status == 200
    stories.follow(c)
    assert {x.replies[0]["content"]["ename"] for x in stories.values()} == {"KernelRestarted"}
    assert all(len(x.replies) == 1 for x in stories.values())
    assert c.run("1").result == "1"
    c.close()


@pytest.mark.full
def test_large_cells_for_which_there_is_no_room_wait_and_are_run(server_with, kernel_path):
    s = server_with("--kernel-path", kernel_path.add_scripted().path)
    kid, first = with_kernel(s, "scripted", "print up")
    gate = Story(first.start("sleep 5000"))
    until_sent(s, 1 + 1)
    crowd, text = [], "x" * (40 << 20)
    for i in range(16):                     # 640 MiB: more than the sockets to a kernel and the gateway take
        c = Channels(s, kid)
        crowd.append((c, Story(c.start(f"print {i}\n{text}"))))
    small = Channels(s, kid)
    mine = Story(small.start("print small"))
    for i, (c, story) in enumerate(crowd):
        follow(c, story)
        assert (story.status, story.text) == ("ok", f"{i}\n")
        c.close()
    follow(small, mine)
    follow(first, gate)
    assert (mine.status, gate.status) == ("ok", "ok")


# --- gateways that go one after the other -----------------------------------------------

@pytest.mark.full
def test_a_gateway_that_dies_right_after_it_came_knows_of_all_clients_of_the_one_before(server_with):
    s = server_with()
    kid, b = with_kernel(s)
    a = Channels(s, kid)                    # newer: it stands before b in the note
    asks = Story(a.start("input('name? ')", allow_stdin=True))
    until_asked(a)
    waits = Story(b.start("print('b')"))
    until_sent(s, 1 + 2)
    for _ in range(2):
        replace_gateway(s)
        wait_for(lambda: s.kernel(kid))
    b = reconnect(s, kid, b.sid)
    a = reconnect(s, kid, a.sid)
    assert s.interrupt(kid) == 204
    follow(b, waits)
    follow(a, asks)
    a.close()
    b.close()
