"""jupyter_kernel_test's sample for ipykernel, through a WebSocket of the gateway instead
of ZeroMQ sockets; each message is checked by its validate_message."""

import test_ipykernel
from holdcell_app import Process, free_port
from jupyter_kernel_client.manager import KernelHttpManager
from jupyter_kernel_client.utils import deserialize_msg_from_ws_v1
from jupyter_kernel_client.wsclient import JupyterSubprotocol, KernelWebSocketClient


class Client(KernelWebSocketClient):
    def _on_message(self, s, message):
        """jupyter_kernel_client 1.0.2 raises KeyError at each v1 message: it formats a line
        for its log with a key that only legacy messages have."""
        if self._subprotocol == JupyterSubprotocol.DEFAULT:
            super()._on_message(s, message)
            return
        channel, parts = deserialize_msg_from_ws_v1(message)
        getattr(self, f"_{channel}_msg_queue").put_nowait(self.session.deserialize(parts))


class Gateway(test_ipykernel.IPyKernelTests):
    __test__ = False

    @classmethod
    def setUpClass(cls):
        cls.server = Process([], free_port(), "kernel-test")
        cls.km = KernelHttpManager(
            f"http://127.0.0.1:{cls.server.port}",
            "kernel-test",
            client_kwargs={"subprotocol": cls.subprotocol, "timeout": 60},
        )
        cls.km.client_factory = Client
        cls.km.start_kernel(cls.kernel_name)
        cls.kc = cls.km.client
        cls.kc.start_channels()
        assert cls.kc.channels_running
        cls.kc.kernel_info()
        cls.kc.get_shell_msg(timeout=60)

    @classmethod
    def tearDownClass(cls):
        cls.kc.stop_channels()
        cls.km.shutdown_kernel(now=True)
        cls.server.stop()


class TestLegacy(Gateway):
    __test__ = True
    subprotocol = JupyterSubprotocol.DEFAULT


class TestV1(Gateway):
    __test__ = True
    subprotocol = JupyterSubprotocol.V1
