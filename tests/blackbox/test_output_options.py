"""Options on what clients are sent and may send: rates, tracebacks, types of messages."""

import pytest

from channels import Channels


def flood(n):
    return f"from IPython.display import display\nfor i in range({n}): display({{'text/plain': str(i)}}, raw=True)"


def test_a_rate_limit_is_of_one_socket_and_spares_replies_and_idle(server_with):
    # A window that no machine needs longer than for 1,000 messages: a second one would tell, and let through, again.
    s = server_with("--iopub-msg-rate", "4", "--iopub-rate-window", "60")
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c, Channels(s, kid) as other:
        assert c.run("0").status == "ok"
        for _ in range(2):      # idle begins a new count
            run = c.run(flood(1000))
            assert run.status == "ok" and run.idle
            shown = len(run.of("display_data"))
            assert 200 <= shown <= 240, shown
            assert len(run.of("execute_input")) == 1
            err = run.stream("stderr")
            assert err.startswith("IOPub message rate exceeded.") and "--iopub-msg-rate=4" in err
            assert len([m for m in run.of("stream") if m["content"]["name"] == "stderr"]) == 1
        got = 0
        while got < 2:
            m = other.recv()
            got += m["header"]["msg_type"] == "stream" and m["content"]["name"] == "stderr"
        assert m["header"]["session"] == other.sid and m["parent_header"]["msg_type"] == "execute_request"
        assert c.run("print('again')").text == "again\n"


def test_a_data_rate_counts_printed_text_alone(server_with):
    s = server_with("--iopub-data-rate", "2000", "--iopub-rate-window", "60")
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        run = c.run("print('x' * 5_000_000)")
        assert run.status == "ok" and run.stream("stderr").startswith("IOPub data rate exceeded.")
        assert len(run.text) < 200_000
        run = c.run("from IPython.display import display\ndisplay({'text/plain': 'y' * 5_000_000}, raw=True)")
        assert len(run.of("display_data")) == 1 and run.stream("stderr") == ""


@pytest.mark.full
def test_without_the_option_nothing_is_limited(shared, kernel):
    with Channels(shared, kernel("python3")) as c:
        run = c.run(flood(10000))
        assert len(run.of("display_data")) == 10000 and run.stream("stderr") == ""


def test_tracebacks_can_be_kept_from_clients(server_with):
    s = server_with("--no-tracebacks")
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        run = c.run("raise ValueError('the secret')")
        (error,) = run.of("error")
        assert error["content"] == {"ename": "ExecutionError", "evalue": "Execution error", "traceback": [
            "An exception occurred at runtime, which is not shown due to security reasons."]}
        assert run.status == "error" and run.idle
        assert "secret" not in str(run.reply) and "secret" not in str([m["content"] for m in run.of("error")])
        assert c.run("1").result == "1"


def test_types_of_messages_can_be_limited(server_with):
    s = server_with("--allowed-message-types", "execute_request,kernel_info_request")
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        refused = c.send("complete_request", {"code": "pri", "cursor_pos": 3})
        assert c.run("2").result == "2"
        assert not any(m["parent_header"].get("msg_id") == refused for m in c.seen)
    assert 'event=message_dropped error="complete_request is none of --allowed-message-types"' in s.log()
    assert "unknown_message_type" not in s.log()


def test_a_type_of_messages_that_nobody_knows_is_warned_of_by_name(server_with):
    s = server_with("--allowed-message-types", "execute_request,foo")
    warned = [ln for ln in s.log().splitlines() if "event=unknown_message_type" in ln]
    assert len(warned) == 1 and "level=warn" in warned[0] and "option=--allowed-message-types type=foo " in warned[0], warned
