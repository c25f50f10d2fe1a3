"""A kernel in which SIGINT ends exactly what it was meant for.

Upstream lets KeyboardInterrupt rise anywhere between the arrival of a request and
its idle message. In ipykernel's own code it ends the request without a reply, in a
callback of IPython it is swallowed and the cell runs on, and before `busy` it is lost.
"""

import asyncio
import contextlib
import signal
import sys
import threading

from ipykernel.ipkernel import IPythonKernel
from ipykernel.zmqshell import ZMQInteractiveShell as UpstreamShell

from .signals import ignore_interrupt

INTERRUPTED = compile("raise KeyboardInterrupt", "<interrupted before it began>", "exec")


def in_main_thread():
    """Signals arrive there only; subshells run in threads of their own."""
    return threading.current_thread() is threading.main_thread()


# Programs recognise a notebook by this class name.
class ZMQInteractiveShell(UpstreamShell):
    """Opens the way for SIGINT when the first code of a cell starts."""

    async def run_code(self, code_obj, result=None, *, async_=False):
        if in_main_thread() and self.kernel.admit_interrupts():
            code_obj, async_ = INTERRUPTED, False
        return await super().run_code(code_obj, result, async_=async_)


class Kernel(IPythonKernel):
    """SIGINT is kept while a request is prepared, raised once code of the user runs,
    and ignored between two requests. An interrupted execution always has a reply."""

    shell_class = ZMQInteractiveShell
    _interrupt_kept = False

    def _keep_interrupt(self, signum, frame):
        self._interrupt_kept = True

    def admit_interrupts(self):
        """From now on SIGINT raises. True when one was kept for this moment."""
        if signal.getsignal(signal.SIGINT) == self._keep_interrupt:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        kept, self._interrupt_kept = self._interrupt_kept, False
        return kept

    async def dispatch_shell(self, msg, /, subshell_id=None, *, concurrent=False):
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
        if in_main_thread() and self.get_parent("shell").get("msg_type") != "execute_request":
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def post_handler_hook(self):
        if in_main_thread():
            signal.signal(signal.SIGINT, self._keep_interrupt)

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
        """SIGINT cancels a cell that awaits, also while the event loop sleeps.

        Upstream asks the loop without waking it: such a cell went on until its
        own next event.
        """
        loop = asyncio.get_running_loop()

        def cancel(signum, frame):
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
        return {
            "status": "error",
            "ename": "KeyboardInterrupt",
            "evalue": "",
            "traceback": shell._last_traceback or [],
            "execution_count": max(shell.execution_count - 1, 0),
            "user_expressions": {},
            "payload": [],
        }
