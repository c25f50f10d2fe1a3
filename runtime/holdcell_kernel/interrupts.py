"""A kernel in which SIGINT ends exactly what it was meant for.

Upstream raises KeyboardInterrupt anywhere between the arrival of a request and
its idle message. When it lands in ipykernel's own code the client gets an idle
and no execute_reply, and one that comes right after `busy` is lost.
"""

import asyncio
import contextlib
import signal
import sys
import threading

from ipykernel.ipkernel import IPythonKernel

from .signals import ignore_interrupt


class Kernel(IPythonKernel):
    """SIGINT is kept while a request is prepared, raised while code runs, and
    ignored between two requests. An interrupted execution always has a reply."""

    _interrupt_kept = False

    def _keep_interrupt(self, signum, frame):
        self._interrupt_kept = True

    async def dispatch_shell(self, msg, /, subshell_id=None, *, concurrent=False):
        # subshells run in threads of their own, which no signal reaches; comm
        # messages beside a running cell must leave its handler alone
        if concurrent or threading.current_thread() is not threading.main_thread():
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
        if threading.current_thread() is not threading.main_thread():
            return
        if self.get_parent("shell").get("msg_type") != "execute_request":
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def post_handler_hook(self):
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._keep_interrupt)

    async def do_execute(self, *args, **kwargs):
        if threading.current_thread() is not threading.main_thread():
            return await super().do_execute(*args, **kwargs)
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            if self._interrupt_kept:
                raise KeyboardInterrupt
            reply = await super().do_execute(*args, **kwargs)
            signal.signal(signal.SIGINT, self._keep_interrupt)
            return reply
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, self._keep_interrupt)
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
        """The reply to an execution whose interrupt met no code of the user."""
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
