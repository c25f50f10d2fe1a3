"""Subshells of ipykernel 7: several cells at once, each with its own outputs and its own end, also for who was away;
and what clients hear of each other's requests."""

import pytest

from channels import Channels, Run, start_in
from server import DEADLINE, SLOW

LONG = 180 * SLOW
GATE = """
import os, time
while not os.path.exists('/tmp/{name}'):
    time.sleep(0.01)
"""


def ask(client, kind, content=None):
    """A request on the control channel; the content of its reply."""
    msg_id = client.send(kind, content or {}, "control")
    return client.until(lambda m: m["header"]["msg_type"] == kind.replace("_request", "_reply")
                        and m["parent_header"]["msg_id"] == msg_id, LONG)["content"]


def subshell(client):
    made = ask(client, "create_subshell_request")
    assert made["status"] == "ok"
    return made["subshell_id"]


def parent_of(m):
    return (m.get("parent_header") or {}).get("msg_id")


def collect(client, ids, timeout=LONG):
    """{msg_id: Run} when each has its reply and its idle, which come at once for all of them."""
    runs = {i: Run() for i in ids}

    def take(m):
        run = runs.get(parent_of(m))
        if run is not None:
            run.messages.append(m)
            if m["header"]["msg_type"] == "execute_reply":
                assert run.reply is None, "two replies to one request"
                run.reply = m
            run.idle |= m["header"]["msg_type"] == "status" and m["content"]["execution_state"] == "idle"
        return all(r.reply and r.idle for r in runs.values())

    if not any([take(m) for m in list(client.seen)][-1:]):
        client.until(take, timeout)
    return runs


def begun(client, msg_id):
    if not any(m["header"]["msg_type"] == "execute_input" and parent_of(m) == msg_id for m in client.seen):
        client.until(lambda m: m["header"]["msg_type"] == "execute_input" and parent_of(m) == msg_id, LONG)


def states(run):
    return [m["content"]["execution_state"] for m in run.of("status")]


@pytest.fixture
def kid(shared, kernel):
    kid = kernel("python3")
    with Channels(shared, kid) as c:
        assert c.run("pass").status == "ok"
    return kid


def open_gate(client, sub, name):
    run = collect(client, [msg := start_in(client, sub, f"open('/tmp/{name}', 'w').close()")])[msg]
    assert run.status == "ok"


def test_two_subshells_and_the_main_shell_work_at_once_and_the_state_is_busy_until_all_are_done(shared, kid):
    with Channels(shared, kid) as c:
        one, two, free = subshell(c), subshell(c), subshell(c)
        assert sorted(ask(c, "list_subshell_request")["subshell_id"]) == sorted([one, two, free])
        main = c.start(GATE.format(name="main") + "print('main')")
        first = start_in(c, one, GATE.format(name="one") + "print('one')")
        second = start_in(c, two, GATE.format(name="two") + "print('two')")
        for msg in (main, first, second):
            begun(c, msg)                               # all three are at work now
        open_gate(c, free, "two")
        run = collect(c, [second])[second]
        assert run.status == "ok" and run.text == "two\n" and states(run) == ["busy", "idle"]
        assert shared.kernel(kid)["execution_state"] == "busy"
        open_gate(c, free, "main")
        run = collect(c, [main])[main]
        assert run.status == "ok" and run.text == "main\n" and states(run) == ["busy", "idle"]
        assert shared.kernel(kid)["execution_state"] == "busy", "a subshell works still"
        open_gate(c, free, "one")
        run = collect(c, [first])[first]
        assert run.status == "ok" and run.text == "one\n" and states(run) == ["busy", "idle"]
        shared.wait_state(kid, "idle")
        assert ask(c, "delete_subshell_request", {"subshell_id": two})["status"] == "ok"
        assert sorted(ask(c, "list_subshell_request")["subshell_id"]) == sorted([one, free])


def test_cells_of_several_shells_are_replayed_each_with_its_own_output_and_end(shared, kid):
    count = 300
    say = "\nfor i in range(%d):\n    print('{0}', i, flush=True)\n" % count
    with Channels(shared, kid) as c:
        sid = c.sid
        names = {"main": None, "one": subshell(c), "two": subshell(c)}
        sent = {}
        for name, sub in names.items():
            code = GATE.format(name="all") + say.format(name)
            sent[name] = c.start(code) if sub is None else start_in(c, sub, code)
            begun(c, sent[name])
    with Channels(shared, kid) as other:
        open_gate(other, subshell(other), "all")
        shared.wait_state(kid, "idle", LONG)
        with Channels(shared, kid, sid=sid) as back:
            runs = collect(back, sent.values())
            for name, msg in sent.items():
                run = runs[msg]
                assert run.status == "ok"
                assert run.text.split("\n")[:-1] == [f"{name} {i}" for i in range(count)]
                assert states(run) == ["idle"], "its busy was read before"
            for msg in sent.values():
                assert sum(m["header"]["msg_type"] == "execute_reply" and parent_of(m) == msg for m in back.seen) == 1


def test_clients_hear_status_and_output_of_each_other_but_no_replies_also_when_they_were_away(shared, kid):
    with Channels(shared, kid) as mine, Channels(shared, kid) as away:
        sid = away.sid
        away.close()
        msg = mine.start("print('shared'); 7")
        assert mine.finish(msg).status == "ok"
        with Channels(shared, kid) as late, Channels(shared, kid, sid=sid) as back:
            assert back.run("'mine'").result == "'mine'"
            of_other = [m for m in back.seen if parent_of(m) == msg]
            kinds = [m["header"]["msg_type"] for m in of_other]
            said = [m["content"]["execution_state"] for m in of_other if m["header"]["msg_type"] == "status"]
            assert said == ["busy", "idle"]
            assert kinds[0] == kinds[-1] == "status"
            assert kinds.count("execute_input") == kinds.count("execute_result") == 1
            assert "execute_reply" not in kinds
            assert late.run("'late'").result == "'late'"
            assert not any(parent_of(m) == msg for m in late.seen), "who was not there gets nothing of before"


def test_the_question_of_a_client_for_the_kernel_is_heard_by_all_and_answered_to_one(shared, kid):
    with Channels(shared, kid) as a, Channels(shared, kid) as b:
        msg = a.send("kernel_info_request", {})
        a.until(lambda m: m["header"]["msg_type"] == "kernel_info_reply" and parent_of(m) == msg, DEADLINE)
        assert b.run("1").status == "ok"
        heard = [m for m in b.seen if parent_of(m) == msg]
        assert [m["header"]["msg_type"] for m in heard] == ["status", "status"]
        assert [m["content"]["execution_state"] for m in heard] == ["busy", "idle"]


@pytest.mark.full
def test_an_interrupt_is_not_sent_again_for_a_cell_of_a_subshell(server_with, kernel_path):
    """It never reaches it: a signal hits what the main shell runs. This kernel runs all in one, and shows the signal."""
    s = server_with("--kernel-path", kernel_path.add_scripted().path)
    kid = s.start_kernel("scripted")
    with Channels(s, kid) as c:
        assert c.run("print up").text == "up\n"
        cell = start_in(c, "aside", "print in\nsleep 5000")      # longer than RUN_AGAIN_MS twice
        c.until(lambda m: m["header"]["msg_type"] == "stream" and parent_of(m) == cell)
        assert s.interrupt(kid) == 204
        assert c.finish(cell).status == "ok"
