"""Room between the thread that reads the shell channel and those that work on the requests.

Upstream's pairs of sockets hold some two thousand messages, then the thread waits in the middle of handing one over:
meanwhile no reply goes out and no subshell is given anything. How many requests wait is the gateway's to bound.
"""

import ipykernel.subshell
import ipykernel.subshell_manager
import zmq
from ipykernel.socket_pair import SocketPair


class RoomyPair(SocketPair):
    """Holds what it is given."""

    def __init__(self, context: zmq.Context, name: str):
        # As upstream, which leaves no moment between the making and the connection, whose limits are those of then.
        self.from_socket = context.socket(zmq.PAIR)
        self.to_socket = context.socket(zmq.PAIR)
        self.from_socket.hwm = self.to_socket.hwm = 0
        self.from_socket.bind(self._address(name))
        self.to_socket.connect(self._address(name))


def use():
    """Makes ipykernel's threads talk through such pairs."""
    ipykernel.subshell.SocketPair = ipykernel.subshell_manager.SocketPair = RoomyPair
