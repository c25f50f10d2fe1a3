"""A client that does not read falls off the event log: it alone is closed, and may come back."""

import pytest

from channels import Channels, Ended

PIECES, TIMES = 32, 10      # MiB a cell, cells: the log keeps 256 MiB and what is in memory
FLOOD = f"""
from IPython.display import display
for i in range({PIECES}):
    display({{'text/plain': 'x' * (1 << 20)}}, raw=True)
"""


def test_a_client_that_falls_off_the_log_is_closed_with_1013_and_nobody_else(shared, kernel):
    kid = kernel("python3")
    with Channels(shared, kid) as reader, Channels(shared, kid) as lazy:
        assert lazy.run("marker = 'kept'").status == "ok"
        for _ in range(TIMES):              # cell by cell, so that who reads keeps up
            run = reader.run(FLOOD, timeout=120)
            assert run.status == "ok" and len(run.of("display_data")) == PIECES
            reader.seen.clear()
        with pytest.raises(Ended) as end:
            while True:
                lazy.recv()
                lazy.seen.clear()
        assert end.value.args == (1013,)
        assert reader.run("marker").result == "'kept'"
        with Channels(shared, kid, sid=lazy.sid) as back:       # what it missed is gone, not the kernel
            assert back.run("marker", timeout=120).result == "'kept'"
        with Channels(shared, kid) as fresh:
            assert fresh.run("marker").result == "'kept'"
