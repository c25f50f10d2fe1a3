"""Connection data and listening sockets that arrive as file descriptors.

Descriptor 3 (named by the -f argument) holds the connection JSON, 4 to 8 are
listening unix stream sockets: shell, control, stdin, iopub, hb. Nothing is left
in the file system, in argv or in the environment for other processes to read.
"""

import fcntl
import json
import os
import re
import socket
import stat

FIRST_SOCKET = 4
CHANNELS = ("shell", "control", "stdin", "iopub", "hb")
MAX_CONNECTION_BYTES = 64 * 1024


class HandoverError(Exception):
    """The descriptors are not what a gateway of holdcell passes."""


class Handed:
    """What a kernel was given: .info (dict) and .sockets {channel: fd}."""

    def __init__(self, info, sockets):
        self.info = info
        self.sockets = sockets


def descriptor_of(connection_file):
    match = re.fullmatch(r"/(?:proc/self|dev)/fd/([0-9]+)", connection_file)
    return int(match.group(1)) if match else None


def names_a_descriptor(connection_file):
    return descriptor_of(connection_file) is not None


def read_connection(fd):
    """The JSON object behind fd, read from its start whatever its position is."""
    data = b""
    try:
        while len(data) <= MAX_CONNECTION_BYTES:
            piece = os.pread(fd, MAX_CONNECTION_BYTES + 1 - len(data), len(data))
            if not piece:
                break
            data += piece
    except OSError as error:
        raise HandoverError(f"cannot read the connection data from descriptor {fd}: {error.strerror}")
    if len(data) > MAX_CONNECTION_BYTES:
        raise HandoverError(f"connection data longer than {MAX_CONNECTION_BYTES} bytes")
    try:
        info = json.loads(data)
    except ValueError:
        # not the parser's message: it may quote the key
        raise HandoverError("the connection data is not JSON") from None
    if not isinstance(info, dict) or not isinstance(info.get("key"), str):
        raise HandoverError("the connection data is not an object with a key")
    return info


def check_listener(fd, channel):
    """fd as a listening unix stream socket, closed on exec, not blocking."""
    try:
        if not stat.S_ISSOCK(os.fstat(fd).st_mode):
            raise HandoverError(f"descriptor {fd} ({channel}) is not a socket")
    except OSError as error:
        raise HandoverError(f"descriptor {fd} ({channel}) is missing: {error.strerror}")
    sock = socket.socket(fileno=fd)
    try:
        if sock.family != socket.AF_UNIX or sock.type != socket.SOCK_STREAM:
            raise HandoverError(f"descriptor {fd} ({channel}) is not a unix stream socket")
        if not sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            raise HandoverError(f"descriptor {fd} ({channel}) does not listen")
    finally:
        sock.detach()
    os.set_inheritable(fd, False)
    # a client that gave up between poll and accept must not block the I/O thread
    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_NONBLOCK)


def take(connection_file):
    """Read and close the connection data, check the sockets; returns Handed."""
    fd = descriptor_of(connection_file)
    info = read_connection(fd)
    os.close(fd)
    sockets = {}
    for offset, channel in enumerate(CHANNELS):
        check_listener(FIRST_SOCKET + offset, channel)
        sockets[channel] = FIRST_SOCKET + offset
    return Handed(info, sockets)
