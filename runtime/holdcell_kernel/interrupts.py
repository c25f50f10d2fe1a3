"""A kernel in which SIGINT ends exactly what it was meant for.

Upstream lets KeyboardInterrupt rise anywhere between the arrival of a request and
its idle message. In ipykernel's own code it ends the request without a reply, in a
callback of IPython it is swallowed and the cell runs on, and before `busy` it is lost.

A signal says not which cell it is for. The gateway does, on the control channel:
an interrupt_request that names a request ends that one, whether it runs, waits or
is still on its way, and no other. Where the control channel cannot answer in time,
as beside a cell that holds the interpreter lock, the gateway sends the signal.
"""

import asyncio
import collections
import contextlib
import inspect
import signal
import sys
import threading
import time

from ipykernel.ipkernel import IPythonKernel
from ipykernel.zmqshell import ZMQInteractiveShell as UpstreamShell
from IPython.core.interactiveshell import ExecutionInfo, ExecutionResult
from traitlets import observe

from .signals import ignore_interrupt, works_in

INTERRUPTED = compile("raise KeyboardInterrupt", "<interrupted before it began>", "exec")
ANSWERS = (IPythonKernel.do_execute, UpstreamShell.run_cell_async)  # what they raise ends as a reply with an error
POKES = (0.005, 0.02, 0.1, 0.4, 1)  # seconds after a signal
WANTED_MAX = 256  # named before they arrived; what never comes is forgotten
WANTED_S = 60
# A name may cross the reply of its cell. It is not for a later one, of a client that uses an id twice.
FINISHED_MAX = 16
FINISHED_S = 5


def in_main_thread():
    """Signals arrive there only; subshells run in threads of their own."""
    return threading.current_thread() is threading.main_thread()


# Programs recognise a notebook by this class name.
class ZMQInteractiveShell(UpstreamShell):
    """Opens the way for SIGINT when the first code of a cell starts."""

    @observe("exit_now")
    def _update_exit_now(self, change):
        """Upstream's, from any thread: in a subshell its timer is lost, or stops a loop that sleeps on."""
        if change["new"]:
            loop = getattr(self.kernel, "io_loop", None)  # a startup file has none yet
            if loop:
                loop.add_callback(loop.call_later, 0.1, loop.stop)
            exit_hook = getattr(self.kernel.eventloop, "exit_hook", None)
            if exit_hook:
                exit_hook(self.kernel)

    async def run_cell_async(self, raw_cell, store_history=False, silent=False, shell_futures=True, **more):
        """Upstream's, and what is raised in its own code is a result too: in a task it would end the event loop."""
        # Upstream's run_cell forgets it; a cell that awaits comes here alone.
        self._last_traceback_during_displayhook = False
        try:
            return await super().run_cell_async(raw_cell, store_history, silent, shell_futures, **more)
        except KeyboardInterrupt as interrupt:
            info = ExecutionInfo(raw_cell, store_history, silent, shell_futures, more.get("cell_id"),
                                 more.get("cell_meta"), transformed_cell=more.get("transformed_cell"))
            result = ExecutionResult(info)
            result.error_before_exec = interrupt
            self.showtraceback()
            return result

    async def run_code(self, code_obj, result=None, *, async_=False):
        if in_main_thread() and self.kernel.admit_interrupts():
            code_obj, async_ = INTERRUPTED, False
        return await super().run_code(code_obj, result, async_=async_)

    def user_expressions(self, expressions):
        """They are code of the user also where none was run before them: a cell may be empty."""
        if expressions and in_main_thread() and self.kernel.admit_interrupts():
            raise KeyboardInterrupt
        return super().user_expressions(expressions)

    def _user_obj_error(self):
        """An interrupt ends the execution: upstream ends that one expression, and goes on with the next."""
        if isinstance(sys.exc_info()[1], KeyboardInterrupt):
            raise
        return super()._user_obj_error()


class Kernel(IPythonKernel):
    """SIGINT is kept while a request is prepared, raised once code of the user runs,
    and ignored between two requests. An interrupted execution always has a reply.

    Callbacks and transformers of the user may never come to their end, and belong to
    the preparation: the second one is raised there too.
    """

    shell_class = ZMQInteractiveShell
    _interrupt_kept = False
    _at_work = None  # msg_id of the execution whose code may be interrupted

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self._work_lock = threading.Lock()  # held while _at_work changes, or is signalled
        self._wanted = collections.OrderedDict()  # until when
        self._finished = collections.deque(maxlen=FINISHED_MAX)  # with the time
        signal.signal(signal.SIGURG, ignore_interrupt)

    def _keep_interrupt(self, signum, frame):
        # Raised in what answers for it alone. It stays kept: IPython's callbacks swallow it, and the cell would run.
        if self._interrupt_kept and works_in(frame, *ANSWERS):
            raise KeyboardInterrupt
        self._interrupt_kept = True

    def admit_interrupts(self):
        """From now on SIGINT raises. True when one was kept for this moment."""
        if signal.getsignal(signal.SIGINT) == self._keep_interrupt:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        kept, self._interrupt_kept = self._interrupt_kept, False
        return kept

    async def dispatch_shell(self, msg, /, subshell_id=None, *, concurrent=False):
        # After exit() upstream goes on for a moment: what a cell did then would be gone, and the cell was ok. As it is
        # nobody answers, and the gateway says of each that the kernel has ended.
        if self.shell.exit_now:
            return
        # a comm message beside a running cell must leave that cell's handler alone
        if concurrent or not in_main_thread():
            await super().dispatch_shell(msg, subshell_id=subshell_id, concurrent=concurrent)
            return
        self._interrupt_kept = False
        signal.signal(signal.SIGINT, self._keep_interrupt)
        try:
            await super().dispatch_shell(msg, subshell_id=subshell_id, concurrent=concurrent)
        finally:
            signal.signal(signal.SIGINT, ignore_interrupt)

    def pre_handler_hook(self):
        """Requests without code of the user may be interrupted as upstream does it."""
        if not in_main_thread():
            return
        parent = self.get_parent("shell")
        if parent.get("msg_type") != "execute_request":
            signal.signal(signal.SIGINT, signal.default_int_handler)
            return
        with self._work_lock:
            self._at_work = parent["header"].get("msg_id")
            if self._wanted.pop(self._at_work, 0) > time.monotonic():
                self._interrupt_kept = True

    def post_handler_hook(self):
        if in_main_thread():
            signal.signal(signal.SIGINT, self._keep_interrupt)
            # who holds the lock has sent the signal before it lets go: it arrives here
            with self._work_lock:
                if self._at_work is not None:
                    self._finished.append((self._at_work, time.monotonic()))
                self._at_work = None

    async def do_execute(self, *args, **kwargs):
        try:
            reply = await super().do_execute(*args, **kwargs)
            self.post_handler_hook()
            return reply
        except KeyboardInterrupt:
            self.post_handler_hook()
            return self._interrupted_reply()

    @contextlib.contextmanager
    def _cancel_on_sigint(self, future):
        """SIGINT cancels a cell that awaits, also while the event loop sleeps, and is raised in one that works.

        Upstream asks the loop without waking it: such a cell went on until its
        own next event, and one that comes to none for ever.
        """
        loop = asyncio.get_running_loop()

        def cancel(signum, frame):
            if works_in(frame, ZMQInteractiveShell.run_code):
                raise KeyboardInterrupt
            if works_in(frame, IPythonKernel.do_execute) and future.done():  # callbacks after the cell
                raise KeyboardInterrupt
            if works_in(frame, *ANSWERS) or inspect.getcoroutinestate(future.get_coro()) == inspect.CORO_CREATED:
                self._keep_interrupt(signum, frame)
            else:
                loop.call_soon_threadsafe(future.cancel)

        before = signal.signal(signal.SIGINT, cancel)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _interrupted_reply(self):
        """The reply to an execution that was interrupted outside the user's code."""
        shell = self.shell
        shell._last_traceback = None
        shell.showtraceback(sys.exc_info())
        payload = shell.payload_manager.read_payload()
        shell.payload_manager.clear_payload()  # or the next cell gives it
        return {
            "status": "error",
            "ename": "KeyboardInterrupt",
            "evalue": "",
            "traceback": shell._last_traceback or [],
            "execution_count": max(shell.execution_count - 1, 0),
            "user_expressions": {},
            "payload": payload,
        }


class NamingKernel(Kernel):
    """The kernel of a gateway that names the cell which an interrupt is for."""

    async def interrupt_request(self, stream, ident, parent):
        """An interrupt_request of a client names none: the gateway sends one that does with it."""
        content = {"status": "ok"}
        target = parent["content"].get("msg_id")
        if isinstance(target, str) and not self._interrupt_named(target, parent["content"].get("until_us", 0)):
            content = {"status": "error", "ename": "TooLate", "evalue": "the signal comes instead", "traceback": []}
        self.session.send(stream, "interrupt_reply", content, parent, ident=ident)

    def _interrupt_named(self, target, until_us):
        with self._work_lock:
            # from then on the gateway sends the signal: both would be one too many
            if time.monotonic_ns() // 1000 > until_us:
                return False
            if target == self._at_work:
                self._send_interrupt_children()
                for seconds in POKES:
                    asyncio.get_running_loop().call_later(seconds, self._poke, target)
                return True
            now = time.monotonic()
            if any(msg_id == target and now < then + FINISHED_S for msg_id, then in self._finished):
                return True  # its reply is on the way
            self._wanted[target] = now + WANTED_S
            while len(self._wanted) > WANTED_MAX:
                self._wanted.popitem(last=False)
        return True

    def _poke(self, target):
        """Makes the main thread look whether a signal has come.

        We run when that thread lets go of the interpreter lock, as before it sleeps. A
        signal that comes right then is noted, and the system call that follows sleeps
        all the same. SIGURG ends that call, and means nothing if all was well.
        """
        with self._work_lock:
            if target == self._at_work:
                signal.pthread_kill(threading.main_thread().ident, signal.SIGURG)
