"""Who sent what, and who must have seen which outputs of it: the bookkeeping of the soak test."""

import asyncio
import collections
import time

DEADLINE = 240      # seconds for what takes one: the machine may be busy with other things
SLOW = 30           # worth a line in the report


class Ledger:
    """Counts, and what was broken."""

    def __init__(self):
        self.counts = collections.Counter()
        self.broken = []
        self.longest = 0.0, ""

    def note(self, what, n=1):
        self.counts[what] += n

    def breach(self, text):
        self.counts["breaches"] += 1
        if len(self.broken) < 100:
            self.broken.append(f"{time.strftime('%H:%M:%S')} {text}")


class Cell:
    """One request, the outputs that it must have, in order, and how far each client has seen them.

    A disturbed one (by an interrupt or a restart of its kernel) may end early: its outputs must still come in
    order and without a gap, and a run must still get its one reply and its idle."""

    def __init__(self, kernel, client, message, expect, answer):
        self.kernel, self.client, self.id = kernel, client, message["header"]["msg_id"]
        self.kind, self.expect, self.answer = message["header"]["msg_type"], expect, answer
        self.is_run = self.kind == "execute_request"
        self.disturbed = kernel.disturbing > 0
        self.seen = {c: 0 for c in kernel.clients if c.steady}      # items by client, for those who must see all
        self.part = collections.defaultdict(str)                    # a line of which the end is still to come
        if self.kind == "kernel_info_request":
            self.seen.clear()       # it may be answered without the kernel: then there is no status
        self.waiting = set(self.seen)
        self.reply = None
        self.changed = asyncio.Event()
        self.began = time.monotonic()
        kernel.cells[self.id] = self

    def __repr__(self):
        return f"{self.kind} {self.expect[:1]}.. of {self.client} on {self.kernel.id[:8]}"

    # --- what clients see of it
    def item(self, who, text):
        at = self.seen.get(who)
        if at is None:
            return
        self.kernel.ledger.note("outputs checked")
        if at >= len(self.expect) or self.expect[at] != text:
            wanted = self.expect[at] if at < len(self.expect) else "nothing more"
            self.kernel.ledger.breach(f"{self!r}: {who} got {text!r} in place of {wanted!r}")
            self.seen.pop(who)
            self.waiting.discard(who)
        else:
            self.seen[who] = at + 1
        self.touch()

    def text(self, who, more):
        lines = (self.part[who] + more).split("\n")
        self.part[who] = lines.pop()
        for line in lines:
            self.item(who, line)

    def idle(self, who):
        if who not in self.waiting:
            return
        self.waiting.discard(who)
        self.kernel.ledger.note("idles checked")
        if not self.disturbed and self.seen[who] != len(self.expect):
            self.kernel.ledger.breach(f"{self!r}: {who} has idle and {self.seen[who]} of {len(self.expect)} outputs")
        self.touch()

    def replied(self, content):
        if self.reply is not None:
            self.kernel.ledger.breach(f"{self!r}: a second reply")
            return
        self.reply = content
        self.kernel.ledger.note("replies checked")
        took = time.monotonic() - self.began
        self.kernel.ledger.longest = max(self.kernel.ledger.longest, (took, f"{self!r}, at {time.strftime('%H:%M:%S')}"))
        if took > SLOW:
            self.kernel.ledger.note(f"replies after more than {SLOW} s")
        if self.seen.get(self.client, 0) != len(self.expect) and not self.disturbed:
            self.kernel.ledger.note(f"replies ahead of outputs ({self.kernel.dialect.name})")
        self.touch()

    def touch(self):
        self.changed.set()
        if self.over:
            self.drop()

    def drop(self):
        """Nothing more is asked of it."""
        self.kernel.cells.pop(self.id, None)
        if self.answer and self.reply is None:
            self.kernel.late.add(self.id)

    # --- when it is over
    @property
    def mine(self):
        """The asker has what it must get."""
        if self.disturbed and not self.is_run:
            return True
        return (self.answer is None or self.reply is not None) and self.client not in self.waiting

    @property
    def over(self):
        return self.mine and (self.disturbed or not self.waiting)

    def disturb(self):
        self.disturbed = True
        self.touch()

    def leave(self, who):
        """That client begins anew: nothing is owed to it."""
        self.seen.pop(who, None)
        self.waiting.discard(who)
        self.touch()
        if who is self.client:
            self.drop()

    async def until(self, reached):
        """False when it ended before."""
        end = time.monotonic() + DEADLINE
        while not reached():
            if self.mine:
                return False
            self.changed.clear()
            try:
                await asyncio.wait_for(self.changed.wait(), max(0.01, end - time.monotonic()))
            except asyncio.TimeoutError:
                self.drop()
                self.kernel.ledger.breach(
                    f"{self!r}: no end within {DEADLINE} s: reply={self.reply} idle={self.client not in self.waiting} "
                    f"seen={self.seen.get(self.client)} disturbed={self.disturbed}")
                raise Unanswered from None
        return True

    async def end(self, status="ok"):
        await self.until(lambda: self.mine)
        got = (self.reply or {}).get("status")
        if self.answer and got != status and not self.disturbed:
            self.kernel.ledger.breach(f"{self!r}: status {got!r}, not {status!r}: {str(self.reply)[:200]}")
        return got


class Unanswered(Exception):
    pass


class Kernel:
    """A kernel and its cells."""

    SETTLE = 10      # seconds after which an interrupt or a restart hits nothing more

    def __init__(self, ledger, target, kid, dialect):
        self.ledger, self.target, self.id, self.dialect = ledger, target, kid, dialect
        self.clients, self.cells = [], {}
        self.late = set()           # ids whose reply may still come, or not
        self.disturbing = self.epoch = 0

    async def disturb(self, act):
        """Runs act() with every cell of that time marked."""
        self.disturbing += 1
        self.epoch += 1
        for cell in list(self.cells.values()):
            cell.disturb()
        try:
            return await act()
        finally:
            asyncio.get_running_loop().call_later(self.SETTLE, self.calm)

    def calm(self):
        self.disturbing -= 1

    def overdue(self):
        """Cells that somebody waits for in vain."""
        now = time.monotonic()
        for cell in list(self.cells.values()):
            if now - cell.began > DEADLINE + 30:
                cell.drop()
                if not cell.disturbed:
                    self.ledger.breach(f"{cell!r}: no idle for {[str(c) for c in cell.waiting]}")
