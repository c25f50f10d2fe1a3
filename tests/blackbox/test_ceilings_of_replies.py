"""A reply above a ceiling is dropped; its asker gets an answer that says so, and nothing else ends."""

import pytest

from channels import Channels


def ask(c, mib):
    """A cell whose reply carries a value of so many MiB; its request's id."""
    return c.send("execute_request", {"code": "marker = 'set'", "silent": False, "store_history": True,
                                      "user_expressions": {"big": f"'x' * ({mib} << 20)"},
                                      "allow_stdin": False, "stop_on_error": False})


@pytest.mark.parametrize("mib, ename", [(70, "MessageTooLarge"), pytest.param(140, "RunLost", marks=pytest.mark.full)], ids=["frame", "connection"])
def test_a_reply_above_the_ceiling_is_answered_by_the_gateway(shared, kernel, mib, ename):
    kid = kernel("python3")
    with Channels(shared, kid) as c, Channels(shared, kid) as other, Channels(shared, kernel("python3")) as apart:
        assert c.run("0").status == "ok" and apart.run("0").status == "ok"
        big = ask(c, mib)
        side = apart.start("import time; time.sleep(1); 'apart'")
        after = other.start("'after ' + marker")
        run = c.finish(big, timeout=120)
        assert (run.status, run.ename) == ("error", ename)
        assert run.reply["metadata"]["holdcell"]["synthetic"] is True
        assert run.idle
        assert other.finish(after, timeout=120).result == "'after set'", "the cell itself did run"
        assert apart.finish(side, timeout=120).result == "'apart'"
        assert c.run("marker", timeout=60).result == "'set'", "the same socket goes on"
        assert shared.wait_state(kid, "idle")


@pytest.mark.full
def test_a_reply_just_below_the_ceiling_arrives_whole(shared, kernel):
    with Channels(shared, kernel("python3")) as c:
        run = c.finish(ask(c, 60), timeout=120)
        assert run.status == "ok"
        value = run.reply["content"]["user_expressions"]["big"]["data"]["text/plain"]
        assert len(value) == (60 << 20) + 2


@pytest.mark.parametrize("mib, ename", [(70, "MessageTooLarge"), pytest.param(140, "ReplyLost", marks=pytest.mark.full)], ids=["frame", "connection"])
def test_so_is_one_to_a_request_that_is_no_run_and_cells_behind_it_go_on(shared, kernel, mib, ename):
    kid = kernel("python3")
    with Channels(shared, kid) as c:
        assert c.run("def inspect(*a, **k):\n"
                     "    return {'status': 'ok', 'found': True, 'metadata': {},\n"
                     f"            'data': {{'text/plain': 'x' * ({mib} << 20)}}}}\n"
                     "get_ipython().kernel.do_inspect = inspect; marker = 'set'").status == "ok"
        ask = c.send("inspect_request", {"code": "print", "cursor_pos": 5, "detail_level": 0})
        m = c.until(lambda m: m["header"]["msg_type"] == "inspect_reply", timeout=120)
        assert m["parent_header"]["msg_id"] == ask
        assert (m["content"]["status"], m["content"]["ename"]) == ("error", ename)
        assert m["metadata"]["holdcell"]["synthetic"] is True
        assert c.run("marker", timeout=60).result == "'set'"
        assert shared.wait_state(kid, "idle")


@pytest.mark.full
def test_a_cell_that_was_sent_before_the_break_was_known_has_an_end(shared, kernel):
    kid = kernel("python3")
    with Channels(shared, kid) as c:
        assert c.run("def inspect(*a, **k):\n"
                     "    return {'status': 'ok', 'found': True, 'metadata': {},\n"
                     "            'data': {'text/plain': 'x' * (140 << 20)}}\n"
                     "get_ipython().kernel.do_inspect = inspect").status == "ok"
        ask = c.send("inspect_request", {"code": "print", "cursor_pos": 5, "detail_level": 0})
        c.until(lambda m: m["header"]["msg_type"] == "status" and m["parent_header"]["msg_id"] == ask
                and m["content"]["execution_state"] == "idle", timeout=120)
        run = c.finish(c.start("'behind'"), timeout=120)     # into the broken connection, or just before
        assert run.result == "'behind'" or run.ename == "RunLost"
        assert c.run("'later'", timeout=60).result == "'later'"
