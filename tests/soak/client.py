"""A well-behaved client: runs cells of all sorts, comes and goes, and checks what every client of its kernel sees."""

import asyncio
import hashlib
import itertools
import os
import uuid

from ledger import DEADLINE, Cell, Unanswered
from wire import Channels, Closed, Rest

numbers = itertools.count()


def digest(data, buffers):
    return f"comm {data} {[hashlib.md5(bytes(b)).hexdigest()[:8] for b in buffers]}"


class Client:
    def __init__(self, kernel, name, v1, rng):
        self.kernel, self.name, self.v1, self.rng = kernel, name, v1, rng
        self.ledger, self.dialect = kernel.ledger, kernel.dialect
        self.rest = Rest(kernel.target)
        self.steady = False         # it must see all that is asked from now on
        self.sid = uuid.uuid4().hex
        self.socket = self.reading = None
        self.replies = []           # ids, in the order they came
        self.inputs = {}            # by the id of a cell: what is answered
        kernel.clients.append(self)

    def __str__(self):
        return self.name

    # --- the socket
    async def connect(self):
        self.socket = await asyncio.wait_for(Channels(self.sid, self.v1).open(self.kernel.target, self.kernel.id), DEADLINE)
        self.steady = True
        self.reading = asyncio.create_task(self.read(self.socket))

    async def read(self, socket):
        """To the end of that socket; its close code."""
        try:
            while True:
                self.take(await socket.receive())
        except Closed as e:
            if not socket.leaving:
                self.ledger.breach(f"{self}: the server closed its socket with {e.args[0]}")
                self.steady = False
            return e.args[0]
        except Exception as e:          # noqa: BLE001 - a task's exception would be lost
            self.ledger.breach(f"{self}: reading: {e!r}")
            return None

    def take(self, m):
        kind, content = m["header"]["msg_type"], m["content"]
        parent = (m.get("parent_header") or {}).get("msg_id")
        self.ledger.note("messages")
        cell = self.kernel.cells.get(parent)
        if m["channel"] == "stdin" and kind == "input_request":
            if parent not in self.inputs:
                self.ledger.breach(f"{self}: was asked for the input of another")
                return
            reply = self.socket.message("input_reply", {"value": self.inputs.pop(parent)}, "stdin", m["header"])
            asyncio.create_task(self.socket.send(reply))
        elif m["channel"] in ("shell", "control"):
            if cell is None or cell.client is not self:
                if parent not in self.kernel.late:
                    self.ledger.breach(f"{self}: {kind} to nothing that it waits for ({parent})")
                return
            self.replies.append(parent)
            cell.replied(content)
        elif cell is not None:
            self.output(cell, m, kind, content)

    def output(self, cell, m, kind, content):
        if kind == "stream":
            if content["name"] == "stdout":
                cell.text(self, content["text"])
            elif not cell.disturbed:
                self.ledger.breach(f"{cell!r}: stderr {content['text'][:200]!r}")
        elif kind in ("display_data", "update_display_data"):
            cell.item(self, f"{kind} {content['transient']['display_id']} {content['data']['text/plain']}")
        elif kind == "comm_msg":
            cell.item(self, digest(content["data"].get("n"), m["buffers"]))
        elif kind == "status" and content["execution_state"] == "idle":
            cell.idle(self)

    async def leave(self):
        """As a browser does; what was on its way is read."""
        self.socket.leaving = True
        self.socket.begin_close()
        await asyncio.wait_for(self.reading, DEADLINE)

    # --- requests
    async def ask(self, kind, content, expect=(), answer=None, **kw):
        m = self.socket.message(kind, content, **kw)
        cell = Cell(self.kernel, self, m, list(expect), answer)
        await self.socket.send(m)
        self.ledger.note("requests")
        return cell

    async def run(self, made, value=None):
        code, expect = made
        m = self.socket.message("execute_request", {
            "code": code, "silent": False, "store_history": True, "user_expressions": {},
            "allow_stdin": value is not None, "stop_on_error": False})
        if value is not None:
            self.inputs[m["header"]["msg_id"]] = value
        cell = Cell(self.kernel, self, m, expect, "execute_reply")
        await self.socket.send(m)
        self.ledger.note("requests")
        return cell

    def tag(self):
        return f"t{next(numbers)}"

    # --- what it does
    async def act_lines(self):
        await (await self.run(self.dialect.lines(self.tag(), self.rng.randrange(5, 25), self.rng.choice((0, 20))))).end()

    async def act_burst(self):
        await (await self.run(self.dialect.lines(self.tag(), 60, 0))).end()

    async def act_display(self):
        await (await self.run(self.dialect.display(self.tag(), 8))).end()

    async def act_input(self):
        value = self.tag() + " typed"
        cell = await self.run(self.dialect.ask(self.tag(), value), value)
        await cell.end()
        self.inputs.pop(cell.id, None)

    async def act_error(self):
        cell = await self.run(self.dialect.error(self.tag()))
        await cell.end("error")
        if not cell.disturbed and cell.reply["ename"] != "Oops":
            self.ledger.breach(f"{cell!r}: ename {cell.reply['ename']}")

    async def act_queue(self):
        """Several at once: the replies come in the order of the requests."""
        first = len(self.replies)
        cells = [await self.run(self.dialect.lines(self.tag(), 3, 0)) for _ in range(5)]
        for cell in cells:
            await cell.end()
        order = [x for x in self.replies[first:] if any(x == c.id for c in cells)]
        if order != [c.id for c in cells] and not any(c.disturbed for c in cells):
            self.ledger.breach(f"{self}: replies out of order")

    async def act_comm(self):
        await (await self.run((self.dialect.setup(), []))).end()
        epoch, comm = self.kernel.epoch, uuid.uuid4().hex
        parts = [await self.ask("comm_open", {"comm_id": comm, "target_name": "soak", "data": {}})]
        for n in range(4):
            buffers = [os.urandom(self.rng.choice((0, 10, 5000, 70000))) for _ in range(n)]
            parts.append(await self.ask("comm_msg", {"comm_id": comm, "data": {"n": n}}, [digest(n, buffers)],
                                        buffers=buffers))
        for cell in parts:
            if self.kernel.epoch != epoch:      # its target may be gone with the old process
                cell.disturb()
            await cell.end()

    async def act_info(self):
        await (await self.ask("kernel_info_request", {}, answer="kernel_info_reply")).end()

    async def act_inspect(self):
        if self.dialect.name == "python3":
            await (await self.ask("complete_request", {"code": "pri", "cursor_pos": 3}, answer="complete_reply")).end()
            await (await self.ask("inspect_request", {"code": "print", "cursor_pos": 5, "detail_level": 0},
                                  answer="inspect_reply")).end()

    async def act_interrupt(self):
        cell = await self.run(self.dialect.sleep(self.tag(), 60000))
        if not await cell.until(lambda: cell.seen.get(self, 0) > 0):
            return          # a restart took it before it began

        async def interrupt():
            status, _ = await self.rest.ask("POST", f"/api/kernels/{self.kernel.id}/interrupt", {})
            if status != 204:
                self.ledger.breach(f"{self}: interrupt is answered {status}")
        await self.kernel.disturb(interrupt)
        self.ledger.note("interrupts")
        if await cell.end() == "ok":
            self.ledger.breach(f"{cell!r}: ok in spite of its interrupt")

    async def act_away(self):
        """Away in the middle of a cell, back with the same session_id."""
        cell = await self.run(self.dialect.lines(self.tag(), 30, 50))
        if not await cell.until(lambda: cell.seen.get(self, 0) > 2):
            return
        await self.leave()
        await asyncio.sleep(self.rng.uniform(0, 2.5))
        await self.connect()
        self.ledger.note("reconnects")
        await cell.end()

    async def act_takeover(self):
        """A second socket with the same session_id takes the place of the first."""
        cell = await self.run(self.dialect.lines(self.tag(), 20, 20))
        old, reading = self.socket, self.reading
        old.leaving = True
        self.socket = await asyncio.wait_for(Channels(self.sid, self.v1).open(self.kernel.target, self.kernel.id), DEADLINE)
        await asyncio.wait_for(reading, DEADLINE)       # all of the old one comes before the new one's
        self.reading = asyncio.create_task(self.read(self.socket))
        self.ledger.note("takeovers")
        await cell.end()

    async def act_fresh(self):
        """Gone, and back as somebody else."""
        self.forget()
        await self.leave()
        self.sid = uuid.uuid4().hex
        await self.connect()
        self.ledger.note("fresh sessions")

    async def act_crash(self):
        """Its machine resets the connection; what was on its way is nobody's fault."""
        self.forget()
        self.socket.leaving = True
        self.socket.reset()
        await self.reading
        await self.connect()
        self.ledger.note("resets")

    def forget(self):
        self.steady = False
        for cell in list(self.kernel.cells.values()):
            cell.leave(self)

    ACTS = {"lines": 6, "burst": 2, "display": 3, "input": 2, "error": 1, "queue": 2, "comm": 3, "info": 1, "inspect": 2,
            "interrupt": 1, "away": 2, "takeover": 1, "fresh": 1, "crash": 1}

    async def live(self, until, pause):
        """Acts at a bounded rate until then."""
        names, weights = list(self.ACTS), list(self.ACTS.values())
        await asyncio.sleep(self.rng.uniform(0, pause))
        while not until.is_set():
            name = self.rng.choices(names, weights)[0]
            try:
                await getattr(self, f"act_{name}")()
            except Unanswered:
                pass            # told already
            except Exception as e:      # noqa: BLE001 - one client's end is a finding, not the test's end
                self.ledger.breach(f"{self}: {name}: {type(e).__name__} {e}")
                await self.again()
            self.ledger.note("acts")
            await asyncio.sleep(self.rng.uniform(0.5, 1.5) * pause)

    async def again(self):
        """A new start after something broke."""
        try:
            self.forget()
            self.socket.leaving = True
            self.socket.reset()
            await self.connect()
        except Exception as e:          # noqa: BLE001
            self.ledger.breach(f"{self}: no new start: {e!r}")
