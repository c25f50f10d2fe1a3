"""Interrupts, by signal and by name: they end what they are meant for and nothing else, and it has a reply."""

import time

import pytest
from conftest import CELL, DEADLINE, of_type, streams


def test_an_interrupt_ends_a_cell_and_keeps_the_variables(kernel):
    kernel.text("kept = 'still here'")
    msg_id = kernel.request("import time; print('go', flush=True); time.sleep(600)")
    kernel.wait_for_output(msg_id, "go")
    kernel.interrupt()
    reply = kernel.reply("shell", msg_id)["content"]
    assert (reply["status"], reply["ename"]) == ("error", "KeyboardInterrupt")
    kernel.outputs(msg_id)
    assert kernel.text("print(kept)") == "still here\n"


def test_an_interrupt_ends_waiting_for_input(kernel):
    msg_id = kernel.request("input()", allow_stdin=True)
    kernel.receive("stdin")
    kernel.interrupt()
    assert kernel.reply("shell", msg_id)["content"]["ename"] == "KeyboardInterrupt"
    kernel.outputs(msg_id)


def test_an_interrupt_ends_an_awaiting_cell(kernel):
    msg_id = kernel.request("import asyncio; print('go', flush=True); await asyncio.sleep(600)")
    kernel.wait_for_output(msg_id, "go")
    kernel.interrupt()
    assert kernel.reply("shell", msg_id)["content"]["status"] == "error"
    kernel.outputs(msg_id)


def test_interrupts_between_cells_change_nothing(kernel):
    for _ in range(3):
        kernel.interrupt()
    assert kernel.text("print('unhurt')") == "unhurt\n"


@pytest.mark.parametrize("delay_ms", [0, 0.2, 1, 3])
def test_an_interrupt_at_the_sight_of_busy_always_ends_the_cell_with_a_reply(kernel, delay_ms):
    for _ in range(25):
        msg_id = kernel.request("while True: pass")
        while True:
            msg = kernel.receive("iopub")
            if msg["parent_header"].get("msg_id") == msg_id:
                assert msg["content"] == {"execution_state": "busy"}
                break
        time.sleep(delay_ms / 1000)
        kernel.interrupt()
        reply = kernel.reply("shell", msg_id)["content"]
        assert (reply["status"], reply["ename"]) == ("error", "KeyboardInterrupt")
        assert of_type(kernel.outputs(msg_id), "error")[0]["ename"] == "KeyboardInterrupt"
    assert kernel.text("print('alive')") == "alive\n"


def test_an_interrupt_before_the_first_step_of_an_awaiting_cell_ends_it_with_a_reply(kernel):
    kernel.text("""
import asyncio, inspect, os, signal
def watch():
    if any(inspect.getcoroutinestate(t.get_coro()) == inspect.CORO_CREATED and t.get_coro().__name__ == 'run_cell_async'
           for t in asyncio.all_tasks()):
        os.kill(os.getpid(), signal.SIGINT)
    else:
        asyncio.get_running_loop().call_soon(watch)
watch()
""")
    for _ in range(100):
        reply, _ = kernel.run("await asyncio.sleep(0)")  # the loop may come to it before it comes to watch()
        if reply["status"] != "ok":
            break
    assert reply["ename"] == "KeyboardInterrupt"
    assert kernel.text("print('alive')") == "alive\n"


def interrupt_named(kernel, msg_id, seconds=DEADLINE):
    """As the gateway asks for it: a message with the request that it is for, and until when it holds."""
    asked = kernel.send("control", "interrupt_request",
                        {"msg_id": msg_id, "until_us": time.monotonic_ns() // 1000 + int(seconds * 1e6)})
    return kernel.reply("control", asked)["content"]


def test_a_named_interrupt_ends_the_cell_that_it_names_also_before_that_arrives(kernel):
    for n in range(30):
        msg_id = f"named-{n}"
        if n % 2:
            assert interrupt_named(kernel, msg_id) == {"status": "ok"}
        behind = "not-" + msg_id
        kernel.send("shell", "execute_request", {"code": "while True: pass", **CELL}, msg_id=msg_id)
        kernel.send("shell", "execute_request", {"code": "print('behind')", **CELL}, msg_id=behind)
        if n % 2 == 0:
            assert interrupt_named(kernel, msg_id) == {"status": "ok"}
        assert kernel.reply("shell", msg_id)["content"]["ename"] == "KeyboardInterrupt"
        assert kernel.reply("shell", behind)["content"]["status"] == "ok"
        assert streams(kernel.outputs(behind)) == "behind\n"


def test_a_named_interrupt_that_comes_around_the_end_of_its_cell_never_hits_the_next_one(kernel):
    kernel.text("import time")
    ends = set()
    for n in range(150):
        first = kernel.send("shell", "execute_request", {"code": "for _ in range(20000): pass", **CELL})
        second = kernel.send("shell", "execute_request", {"code": "for _ in range(20000): pass\ntime.sleep(0.01)", **CELL})
        if n % 3:
            time.sleep(0.0004 * (n % 20))
        else:
            kernel.reply("shell", first)  # it is over
        assert interrupt_named(kernel, first) == {"status": "ok"}
        if n % 3:
            ends.add(kernel.reply("shell", first)["content"]["status"])
        assert kernel.reply("shell", second)["content"]["status"] == "ok", n
        kernel.outputs(second)
    assert ends == {"ok", "error"}  # some were in time, some not


def test_a_name_that_crosses_the_reply_of_its_cell_does_not_hit_a_later_cell_of_the_same_id(kernel):
    for _ in range(5):
        kernel.send("shell", "execute_request", {"code": "'first'", **CELL}, msg_id="used-twice")
        assert kernel.reply("shell", "used-twice")["content"]["status"] == "ok"
        kernel.outputs("used-twice")
        assert interrupt_named(kernel, "used-twice") == {"status": "ok"}
        kernel.send("shell", "execute_request", {"code": "print('whole')", **CELL}, msg_id="used-twice")
        assert kernel.reply("shell", "used-twice")["content"]["status"] == "ok"
        assert streams(kernel.outputs("used-twice")) == "whole\n"


def test_a_cell_that_comes_long_after_it_was_named_runs(kernel):
    kernel.text("import holdcell_kernel.interrupts as rules; was, rules.WANTED_S = rules.WANTED_S, 0.1")
    assert interrupt_named(kernel, "long-after") == {"status": "ok"}
    kernel.text("import time; time.sleep(0.2)")
    kernel.send("shell", "execute_request", {"code": "print('whole')", **CELL}, msg_id="long-after")
    assert kernel.reply("shell", "long-after")["content"]["status"] == "ok"
    assert streams(kernel.outputs("long-after")) == "whole\n"
    kernel.text("rules.WANTED_S = was")


def test_a_named_interrupt_ends_a_sleep_that_begins_at_the_same_moment(kernel):
    """The thread that takes the message gets the interpreter lock when the cell lets go of it, just before it sleeps."""
    for _ in range(60):
        kernel.run("import time")
        msg_id = kernel.request("time.sleep(600)")
        while not any(m["msg_type"] == "status" for m in [kernel.receive("iopub")] if
                      m["parent_header"].get("msg_id") == msg_id):
            pass
        assert interrupt_named(kernel, msg_id) == {"status": "ok"}
        assert kernel.reply("shell", msg_id)["content"]["ename"] == "KeyboardInterrupt"
        kernel.outputs(msg_id)


SLEEPS = "(print('go', flush=True), __import__('time').sleep(1000))"


def interrupted(kernel, msg_id, interrupt, times=1):
    """The reply to a request whose code prints 'go' and would go on for ever."""
    kernel.wait_for_output(msg_id, "go")
    for _ in range(times):
        if interrupt == "named":
            assert interrupt_named(kernel, msg_id) == {"status": "ok"}
        else:
            kernel.interrupt()
        time.sleep(0.2)  # two signals at one moment are one
    reply = kernel.reply("shell", msg_id)["content"]
    assert (reply["status"], reply["ename"]) == ("error", "KeyboardInterrupt")
    kernel.outputs(msg_id)
    return reply


@pytest.mark.parametrize("interrupt", ["signal", "named"])
@pytest.mark.parametrize("code", ["", " ", "# a comment", "import asyncio; await asyncio.sleep(0)", "1"])
def test_an_interrupt_ends_expressions_whatever_code_is_before_them(kernel, code, interrupt):
    msg_id = kernel.request(code, user_expressions={"first": SLEEPS, "second": SLEEPS})
    assert interrupted(kernel, msg_id, interrupt)["user_expressions"] == {}
    reply, _ = kernel.run("", user_expressions={"sum": "1 + 1", "fails": "1 / 0"})
    assert reply["user_expressions"]["sum"]["data"] == {"text/plain": "2"}
    assert (reply["status"], reply["user_expressions"]["fails"]["ename"]) == ("ok", "ZeroDivisionError")


def test_what_an_interrupted_execution_asks_of_the_client_is_in_its_own_reply(kernel):
    msg_id = kernel.request("get_ipython().set_next_input('mine')", user_expressions={"never": SLEEPS})
    assert interrupted(kernel, msg_id, "named")["payload"][0]["text"] == "mine"
    assert kernel.run("1")[0]["payload"] == []


@pytest.mark.parametrize("code", ["ran = True", "import asyncio; await asyncio.sleep(0); ran = True"])
@pytest.mark.parametrize("place", ["pre_run_cell", "input transformer", "ast transformer", "post_execute"])
def test_a_second_interrupt_ends_code_that_a_user_put_around_cells(kernel, place, code):
    """A first one waits there for the cell, which it ends."""
    ways = {"input transformer": ("input_transformers_post.append(hangs)", "input_transformers_post.clear()"),
            "ast transformer": ("ast_transformers.append(Hangs())", "ast_transformers.clear()")}
    add, remove = ways.get(place, (f"events.register('{place}', hangs)", f"events.unregister('{place}', hangs)"))
    kernel.text(f"""
import os, time
shell = get_ipython()
def hangs(lines=None):
    if os.path.exists('hang'):
        print('go', flush=True)
        time.sleep(1000)
    return lines
class Hangs:
    def visit(self, node): return hangs(node)
shell.{add}
""")
    for interrupt in ("signal", "named"):
        kernel.text("ran = False")
        (kernel.home / "hang").touch()
        msg_id = kernel.request(code)
        if place == "post_execute":  # that one is raised at once, and the cell went well
            kernel.wait_for_output(msg_id, "go")
            kernel.interrupt()
            assert kernel.reply("shell", msg_id)["content"]["status"] == "ok"
            kernel.outputs(msg_id)
        else:
            interrupted(kernel, msg_id, interrupt, 2)
        (kernel.home / "hang").unlink()
        assert kernel.text("print(ran)") == f"{place == 'post_execute'}\n"
    kernel.text(f"shell.{remove}")


@pytest.mark.parametrize("interrupt", ["signal", "named"])
def test_an_interrupt_ends_a_cell_that_awaited_once_and_then_never_again(kernel, interrupt):
    for code in ("time.sleep(1000)", "async def main():\n    while True: pass\nawait main()"):
        msg_id = kernel.request(f"import asyncio, time\nawait asyncio.sleep(0)\nprint('go', flush=True)\n{code}")
        interrupted(kernel, msg_id, interrupt)
    assert kernel.text("print('alive')") == "alive\n"


def test_a_named_interrupt_that_is_late_is_left_to_the_signal(kernel):
    msg_id = kernel.request("import time\nprint('go', flush=True)\ntime.sleep(0.5)\nprint('whole')")
    kernel.wait_for_output(msg_id, "go")
    assert interrupt_named(kernel, msg_id, -1)["ename"] == "TooLate"
    assert kernel.reply("shell", msg_id)["content"]["status"] == "ok"
    assert streams(kernel.outputs(msg_id)) == "whole\n"


def test_an_interrupt_message_without_a_name_is_answered_and_does_nothing(kernel):
    """The gateway sends one with a name when a client sends one without."""
    msg_id = kernel.request("import time\nprint('go', flush=True)\ntime.sleep(0.5)\nprint('whole')")
    kernel.wait_for_output(msg_id, "go")
    assert kernel.reply("control", kernel.send("control", "interrupt_request"))["content"] == {"status": "ok"}
    assert kernel.reply("shell", msg_id)["content"]["status"] == "ok"
    assert streams(kernel.outputs(msg_id)) == "whole\n"


def test_a_named_interrupt_ends_a_child_of_the_cell_too(kernel):
    msg_id = kernel.request("import subprocess\nprint('go', flush=True)\nsubprocess.run(['sleep', '600'])")
    kernel.wait_for_output(msg_id, "go")
    assert interrupt_named(kernel, msg_id) == {"status": "ok"}
    assert kernel.reply("shell", msg_id)["content"]["ename"] == "KeyboardInterrupt"
    kernel.outputs(msg_id)
    assert kernel.text("print(subprocess.run(['pgrep', '-xf', 'sleep 600']).returncode)").endswith("1\n")


def test_programs_started_between_two_cells_can_be_interrupted(kernel):
    kernel.text("""
import threading, subprocess, signal, time
def later():
    time.sleep(0.5)
    child = subprocess.Popen(['sleep', '600'])
    time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    code.append(child.wait(30))
code = []
thread = threading.Thread(target=later); thread.start()
""")
    time.sleep(0.7)
    assert kernel.text("thread.join(); print(code)") == "[-2]\n"
