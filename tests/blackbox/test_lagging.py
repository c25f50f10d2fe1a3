"""A client that does not read misses what the event log cannot keep, is told exactly what, and disturbs nobody."""

import re

from channels import Channels

PIECES, TIMES = 32, 10      # MiB a cell, cells: the log keeps 256 MiB and what is in memory
FLOOD = f"""
from IPython.display import display
for i in range({PIECES}):
    display({{'text/plain': 'x' * (1 << 20)}}, raw=True)
"""
TOLD = re.compile(r"\(0 of text, (\d+) displays and results, 0 others\): nobody read them in time")


def test_a_client_that_does_not_read_is_told_what_it_missed_and_disturbs_nobody(shared, kernel):
    kid = kernel("python3")
    with Channels(shared, kid) as reader, Channels(shared, kid) as lazy:
        assert lazy.run("marker = 'kept'").status == "ok"
        lazy.seen.clear()
        for _ in range(TIMES):              # cell by cell, so that who reads keeps up
            run = reader.run(FLOOD, timeout=120)
            assert run.status == "ok" and len(run.of("display_data")) == PIECES
            reader.seen.clear()
        shown = missed = 0
        msg = lazy.start("marker")          # what comes of it stands behind all that it did not read
        while True:
            m = lazy.recv()
            lazy.seen.clear()
            shown += m["header"]["msg_type"] == "display_data"
            missed += sum(map(int, TOLD.findall(m["content"].get("text", ""))))
            if m["header"]["msg_type"] == "execute_reply" and m["parent_header"]["msg_id"] == msg:
                break
        assert missed > 0 and shown + missed == PIECES * TIMES
        assert reader.run("marker").result == "'kept'"
        with Channels(shared, kid) as fresh:
            assert fresh.run("marker").result == "'kept'"
