"""pip in a session: the usual one, and a word of explanation where it cannot download.

Without it pip says that no version of the package exists, since no index answered.
"""

import contextlib
import os
import shlex
import socket
import subprocess
import sys

DOWNLOADING = ("install", "download", "wheel", "index", "search")
NO_NETWORK = """\
holdcell: this session has no network, so pip cannot download anything. `pip list` shows what is
here; the operator adds packages in runtime/requirements.in. A wheel that was uploaded works:
    pip install --no-deps --target lib FILE.whl     and then     import sys; sys.path.insert(0, "lib")
"""


def wants_an_index(argv):
    return next((word for word in argv if not word.startswith("-")), None) in DOWNLOADING


def has_network():
    """Whether a route leads out, or a proxy is named. No packet is sent."""
    if any(name.lower() in ("http_proxy", "https_proxy", "all_proxy") for name in os.environ):
        return True
    for family, address in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as s:
            s.connect((address, 9))
            return True
    return False


def main(argv=None):
    argv = sys.argv[1:] if argv is None else argv
    status = subprocess.call([sys.executable, "-m", "pip", *argv])
    if status != 0 and wants_an_index(argv) and not has_network():
        print(NO_NETWORK, end="", file=sys.stderr, flush=True)
    return status


def register(shell):
    """%pip runs the same script as !pip."""

    def pip(line):
        """Run pip in this session, as `!pip` does."""
        shell.system(f"{shlex.quote(os.path.join(sys.prefix, 'bin', 'pip'))} {line}")

    shell.register_magic_function(pip, "line")


if __name__ == "__main__":
    sys.exit(main())
