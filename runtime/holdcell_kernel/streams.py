"""stdout and stderr of the kernel, captured at the level of file descriptors."""

import codecs
import fcntl
import os
import sys

from ipykernel.iostream import OutStream

READ_BYTES = 64 * 1024
PIECE_CHARACTERS = 1000 * 1000
PIPE_BYTES = 1024 * 1024


class CapturedStream(OutStream):
    """Like ipykernel's, but what is written to descriptors 1 and 2 goes to the
    clients only.

    Upstream repeats those bytes on the original descriptor, here the log pipe of
    the gateway: it would hold user output, and a slow reader of it would stop the
    cell. Upstream also gives that log descriptor to children
    (`subprocess.run(..., stdout=sys.stdout)`), whose output is then lost.
    """

    def fileno(self):
        if self._should_watch:
            return self._original_stdstream_fd
        return super().fileno()

    def _setup_stream_redirects(self, name):
        super()._setup_stream_redirects(name)
        # C code may print while it holds the interpreter lock, and then nobody
        # reads the pipe: the more it holds, the later that blocks for ever.
        try:
            fcntl.fcntl(self._fid, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        except OSError:
            pass  # above the user's pipe quota: the default size serves

    def _flush_buffers(self):
        """What was written, in pieces that every reader takes.

        Upstream makes one message of all that a cell printed since the last flush. The
        gateway drops a frame above 64 MB, and the client that JupyterLab's server uses
        closes above 10 MiB; a character is 6 bytes at most in JSON. A hook that uses up
        its message ends the flush, so it gets all at once.
        """
        for parent, data in super()._flush_buffers():
            step = len(data) if self._hooks else PIECE_CHARACTERS
            for start in range(0, len(data), step or 1):
                yield parent, data[start : start + step]

    def _watch_pipe_fd(self):
        # a character may be split between two reads
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        try:
            while data := os.read(self._fid, READ_BYTES):
                if not self._should_watch:
                    return
                text = decoder.decode(data)
                if text:
                    self.write(text)
        except Exception:
            self._exc = sys.exc_info()
