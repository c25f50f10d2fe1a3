"""One persistent interpreter per kernel: state, input, restart."""

import pytest

from channels import Channels


@pytest.mark.guest
def test_variables_are_kept_over_twenty_cells(chan):
    assert chan.run("total = 0; seen = []").status == "ok"
    for i in range(20):
        run = chan.run(f"total += {i}; seen.append({i}); print('cell', {i}); total")
        assert run.status == "ok" and run.text == f"cell {i}\n"
        assert run.result == str(sum(range(i + 1)))
    assert chan.run("seen == list(range(20))").result == "True"


def test_input_is_asked_and_answered(chan):
    run = chan.run("name = input('who? ')\nname.upper()", answer="ann")
    assert run.of("input_request")[0]["content"]["prompt"] == "who? "
    assert run.result == "'ANN'"


def test_input_without_stdin_is_an_error_at_once(chan):
    run = chan.run("input('who? ')")
    assert run.status == "error" and run.ename == "StdinNotImplementedError"


def test_a_figure_comes_as_png_and_a_table_as_html(chan):
    run = chan.run("import matplotlib.pyplot as plt, pandas as pd\n"
                   "plt.plot([1, 3, 2]); plt.show()\n"
                   "pd.DataFrame({'a': [1, 2]})")
    assert run.status == "ok"
    png = run.of("display_data")[0]["content"]["data"]["image/png"]
    import base64
    assert base64.b64decode(png).startswith(b"\x89PNG\r\n\x1a\n")
    assert "<table" in run.of("execute_result")[0]["content"]["data"]["text/html"]
    assert run.stream("stderr") == ""


@pytest.mark.guest
def test_restart_loses_variables_and_keeps_id_files_and_socket(shared, kernel):
    kid = kernel("python3")
    with Channels(shared, kid) as c:
        first = c.run("marker = 4711; open('kept.txt', 'w').write('x'); import os; marker")
        assert first.result == "4711"
        r = shared.restart(kid)
        assert r.status == 200 and r.json()["id"] == kid
        run = c.run("marker")
        assert run.ename == "NameError"
        assert run.reply["header"]["session"] != first.reply["header"]["session"]
        assert c.run("open('kept.txt').read()").result == "'x'"
        assert c.run("input()", answer="y").result == "'y'"
        assert "restarting" not in [m["content"].get("execution_state") for m in c.seen
                                    if m["header"]["msg_type"] == "status"]


@pytest.mark.parametrize("pairs", [10, pytest.param(50, marks=pytest.mark.full)])
def test_an_error_is_followed_by_cells_that_run(chan, pairs):
    for i in range(pairs):
        assert chan.run("1/0").ename == "ZeroDivisionError"
        assert chan.run(str(i)).result == str(i)


def test_every_byte_of_a_huge_print_arrives_in_order(chan):
    """73 MB, more than a frame may hold, with characters of every width."""
    run = chan.run("print('aé€😀' * (7 << 20), end='')", timeout=120)
    assert run.text == "aé€😀" * (7 << 20)
    assert max(len(m["content"]["text"].encode()) for m in run.of("stream")) < 10 << 20
    assert run.status == "ok" and run.stream("stderr") == ""


LATE = ["python3", "-c", "import time; time.sleep(1); from ipykernel.kernelapp import launch_new_instance as go; go()",
        "-f", "{connection_file}"]


def test_a_socket_that_was_there_first_sees_no_message_without_a_parent(server_with, kernel_path):
    """Other servers let nobody in before the kernel has answered, and clients read parent_header.msg_id."""
    kernel_path.add("late", LATE)
    s = server_with("--kernel-path", kernel_path.path, "--kernel-info-timeout", "0.1")
    kid = s.start_kernel("late")
    with Channels(s, kid) as c:
        assert s.kernel(kid)["execution_state"] == "starting"
        assert c.run("6 * 7").result == "42"
        assert [m for m in c.seen if not m["parent_header"]] == []
        assert s.restart(kid).status == 200
        assert c.run("6 * 7").result == "42"
