"""The ipykernel applications of holdcell_kernel."""

import atexit
import faulthandler
import gc
import json
import os
import signal
import sys
import traceback

import ipykernel.connect
import ipykernel.kernelapp
import ipykernel.zmqshell
import zmq
from ipykernel.heartbeat import Heartbeat
from ipykernel.kernelapp import IPKernelApp
from IPython.core import interactiveshell
from IPython.core.profiledir import ProfileDir
from traitlets import Any, Unicode, default, observe
from traitlets.config import Config

from . import packaging, pairs
from .interrupts import Kernel, NamingKernel
from .places import usable

NO_CONNECTION_FILE = (
    "a kernel in a holdcell session has no connection file; further clients connect through the gateway"
)


class UnwrittenProfileDir(ProfileDir):
    """A profile directory that nobody creates: for when no disk has room for one."""

    @observe("location")
    def _location_changed(self, change):
        self.startup_dir = os.path.join(change["new"], "startup")

    @observe("startup_dir")
    def check_startup_dir(self, change=None):
        pass


class KernelApp(IPKernelApp):
    """ipykernel with our streams and interrupts, and no files of its own."""

    kernel_class = Kernel
    log_fd = None  # the gateway's, where stderr is captured
    outstream_class = Unicode("holdcell_kernel.streams.CapturedStream", allow_none=True).tag(config=True)

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        pairs.use()
        # a history file would grow in the session's home and break when that is full
        self.update_config(Config({"HistoryManager": {"hist_file": ":memory:"}}))

    def init_profile_dir(self):
        # asked beforehand: upstream ends the process when it cannot make one
        if usable(os.path.join(self.ipython_dir, "profile_default")):
            try:
                super().init_profile_dir()
            except OSError:
                self._use_no_profile_dir()
        else:
            self._use_no_profile_dir()

    def _use_no_profile_dir(self):
        self._in_init_profile_dir = False
        self.profile_dir = UnwrittenProfileDir(location=os.path.join(self.ipython_dir, "profile_default"))
        # the shell asks once more, and its fallback is a temporary directory
        interactiveshell.get_ipython_dir = lambda: self.ipython_dir

    @default("ipython_dir")
    def _ipython_dir_default(self):
        # the fallback exists and holds nothing of IPython's
        return os.environ.get("IPYTHONDIR") or sys.prefix

    def excepthook(self, etype, evalue, tb):
        """A start that fails is told to the gateway's log, not to our own pipe."""
        log_fd = getattr(sys.stderr, "_original_stdstream_copy", None)
        if log_fd is None:
            super().excepthook(etype, evalue, tb)
            return
        with open(os.dup(log_fd), "w", errors="backslashreplace") as log:
            traceback.print_exception(etype, evalue, tb, file=log)

    def init_path(self):
        """Cells import from the working directory, after the standard library.

        IPython leaves that out under -P, which only protects our own start from
        files in the session's home.
        """
        sites = [i for i, path in enumerate(sys.path) if path.endswith(("site-packages", "dist-packages"))]
        if "" not in sys.path:
            sys.path.insert(sites[0] if sites else 0, "")

    def init_shell(self):
        super().init_shell()
        packaging.register(self.shell)

    def init_signal(self):
        """The handler set in __main__ stays; upstream would ignore SIGINT for all children."""

    def init_io(self):
        super().init_io()
        # a crash is told to the gateway's log: nobody reads our own pipe any more then
        log_fd = self.log_fd = getattr(sys.stderr, "_original_stdstream_copy", None)
        if log_fd is not None:
            faulthandler.enable(file=log_fd, all_threads=False)
            # by this signal the gateway asks where a cell stands that heeds no interrupt,
            # before it ends the kernel; the main thread is the last one that is told
            faulthandler.register(signal.SIGUSR2, file=log_fd, all_threads=True)

    def start(self):
        gc.enable()
        # at the end the last one registered is called first: this goes before the thread that sends ends
        atexit.register(self.end_control_thread)
        super().start()

    def let_go(self):
        """Forget what cells have made: variables, results, the last error."""
        for name in ("last_type", "last_value", "last_traceback", "last_exc"):
            sys.__dict__.pop(name, None)
        if self.shell is None:
            return
        try:
            self.shell._last_traceback = None
            self.shell.InteractiveTB.etype = self.shell.InteractiveTB.value = self.shell.InteractiveTB.tb = None
            self.shell.reset(new_session=False)
        except Exception:
            self.log.debug("variables are left to the interpreter", exc_info=True)

    def end_control_thread(self):
        """Let the thread of control messages finish before anything that it needs is gone.

        It still has to tell the end of the shutdown request that made the main thread leave.
        Where the sender ends first, it waits for that, 10 s or for ever, and the process with it.
        """
        thread = self.control_thread
        if thread and thread.is_alive():
            try:
                thread.stop()
            except RuntimeError:
                pass  # its loop is closed: it ends by itself
            thread.join()


class HandedHeartbeat(Heartbeat):
    """A heartbeat on a listening socket made by somebody else."""

    def __init__(self, context, fd):
        super().__init__(context, ("ipc", "handed", 1))
        self.fd = fd

    def _bind_socket(self):
        bind_descriptor(self.socket, self.fd, "hb")


def bind_descriptor(sock, fd, channel):
    """Let sock accept from fd. The path is not used, only its length is checked."""
    # Past its high-water mark (1000) a publisher drops messages without a word when the
    # gateway is slow for a moment; memory of this session is the better bound.
    sock.sndhwm = sock.rcvhwm = 0
    sock.setsockopt(zmq.USE_FD, fd)
    sock.bind(f"ipc://handed-{channel}")
    sock.setsockopt(zmq.USE_FD, -1)


class HandedKernelApp(KernelApp):
    """The kernel whose sockets and connection data were handed over."""

    kernel_class = NamingKernel
    handed = Any(help="a handover.Handed")

    def init_connection_file(self):
        self.load_connection_info(self.handed.info)
        self.connection_file = "kernel.json"
        hide_connection_file(self.public_connection_info)

    def public_connection_info(self):
        return {"transport": "ipc", "signature_scheme": self.session.signature_scheme, "key": ""}

    def write_connection_file(self, **kwargs):
        pass

    def cleanup_connection_file(self):
        pass

    def log_connection_info(self):
        # connect_request still gets an answer
        self._ports = dict.fromkeys(("shell", "iopub", "stdin", "hb", "control"), 0)

    def _bind_socket(self, s, port):
        channel = self._channel_of(s)
        bind_descriptor(s, self.handed.sockets[channel], channel)
        if channel == "shell":
            # The debugger connects to the last endpoint of this socket. That of the
            # handed one is a path outside the sandbox, where the connect would hang.
            s.bind("inproc://holdcell-shell")
        return 0

    def _channel_of(self, s):
        for channel in ("shell", "control", "stdin", "iopub"):
            if getattr(self, channel + "_socket") is s:
                return channel
        raise ValueError("a socket that is none of the channels")

    def init_heartbeat(self):
        # a context of its own, since the shared one can wait for the interpreter lock
        self.heartbeat = HandedHeartbeat(zmq.Context(), self.handed.sockets["hb"])
        self.heartbeat.start()


def hide_connection_file(public_info):
    """Make ipykernel's connection-file functions harmless: no key, no path, no crash."""

    def get_connection_file(app=None):
        return "kernel.json"

    def get_connection_info(connection_file=None, unpack=False):
        if connection_file is not None:
            raise RuntimeError(NO_CONNECTION_FILE)
        info = public_info()
        return dict(info, key=b"") if unpack else json.dumps(info)

    def refuse(*args, **kwargs):
        raise RuntimeError(NO_CONNECTION_FILE)

    for module in (ipykernel, ipykernel.connect, ipykernel.kernelapp):
        module.get_connection_file = get_connection_file
        module.get_connection_info = get_connection_info
        module.connect_qtconsole = refuse
    # %connect_info and %qtconsole turn these into a warning
    ipykernel.zmqshell.get_connection_file = refuse
    ipykernel.zmqshell.get_connection_info = refuse
    ipykernel.zmqshell.connect_qtconsole = refuse
