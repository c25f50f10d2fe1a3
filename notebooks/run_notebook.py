#!/usr/bin/env python3
"""Runs a notebook through a Jupyter server with a client library.

    run_notebook.py NOTEBOOK --url http://127.0.0.1:8888 [--token T] [--out DIR]
                    [--client kernel|nbclient] [--timeout SECONDS]

--client kernel is jupyter_kernel_client, --client nbclient is nbclient over
jupyter_server's GatewayKernelManager. The token may be in HOLDCELL_TOKEN instead.
The packages of tests/requirements/client.txt have to be there, and are used as pip installs them: what is put over their classes
here changes how a failure is told (at once, and in one line), and gives the WebSocket of nbclient the token, which it would not send.

Writes DIR/NAME.ipynb (executed), DIR/NAME.html and DIR/NAME-1.png, ..., as far as it came.

Exit status: 0 when it ran to its end; 1 when it did not, by its own doing: a cell failed or said what fits into no
notebook, its kernel died, a cell took too long, the notebook or its data cannot be read; 2 when the server did not run
it; 130 when you interrupted it.

The upload cell. A session starts with an empty home. A notebook names the files that
it reads in its metadata ({"holdcell": {"data": ["file.csv"]}}, files of the folder
data/ beside it); a cell that writes them is run first, in the same kernel, and is not
part of the result.
"""

import argparse
import asyncio
import base64
import functools
import json
import os
import pathlib
import re
import signal
import sys
import threading
import time
import warnings
import zlib

import nbformat

UPLOAD = '''\
import base64, pathlib, zlib
for name, text in {files!r}.items():
    path = pathlib.Path("data", name)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(zlib.decompress(base64.b64decode(text)))
'''


def data_names(notebook):
    """The files that the notebook's metadata name; ValueError tells the field that is wrong, and how."""
    def shown(value):
        text = json.dumps(value, ensure_ascii=False)
        return text if len(text) <= 60 else text[:57] + "..."

    ours = notebook.metadata.get("holdcell", {})
    if not isinstance(ours, dict):
        raise ValueError(f'metadata.holdcell must be an object, {{"data": ["file.csv"]}}, and is {shown(ours)}')
    names = ours.get("data", [])
    if not isinstance(names, list):
        raise ValueError(f'metadata.holdcell.data must be a list of file names, ["file.csv"], and is {shown(names)}')
    for number, name in enumerate(names):
        field = f"metadata.holdcell.data[{number}]"
        if not isinstance(name, str) or not name or "\0" in name:
            raise ValueError(f"{field} must be the name of a file, and is {shown(name)}")
        if name == ".." or pathlib.PurePath(name).name != name:
            raise ValueError(f"{field} is {shown(name)}: data files lie directly in the folder data/")
    return names


def upload_cell(notebook, folder):
    """Code that brings the notebook's data into the session, or None."""
    files = {}
    for number, name in enumerate(data_names(notebook)):
        path = folder / "data" / name
        try:
            if not path.is_file():
                raise ValueError(f"{path} is missing: the notebook needs it (metadata.holdcell.data[{number}])")
            files[name] = base64.b64encode(zlib.compress(path.read_bytes(), 9)).decode()
        except OSError as error:
            raise ValueError(f"metadata.holdcell.data[{number}] cannot be read: {error}") from None
    return UPLOAD.format(files=files) if files else None


def may_fail(cell):
    return "raises-exception" in cell.metadata.get("tags", [])


def join_streams(outputs):
    """Neighbouring pieces of one stream as one output, with \\r and \\b applied as a terminal does."""
    joined = []
    for output in outputs:
        if isinstance(output.get("text"), list):
            output = {**output, "text": "".join(output["text"])}
        if joined and output["output_type"] == "stream" == joined[-1]["output_type"] and \
                output["name"] == joined[-1]["name"]:
            joined[-1]["text"] += output["text"]
        else:
            joined.append(dict(output))
    for output in joined:
        if output["output_type"] == "stream":
            output["text"] = re.sub(r"^.*\r(?!\n|$)", "", output["text"], flags=re.M)
    return joined


class CellFailed(Exception):
    """Why a cell did not end well, in one line."""


DEPTH_MAX = 100      # of lists and objects in an output: who copies or writes a notebook takes several calls for each
UNFIT = (nbformat.ValidationError, AttributeError, KeyError, TypeError, ValueError, RecursionError)     # what a message comes to that is none


def unfit(error):
    """CellFailed for an output that no notebook can hold: a kernel's messages are its own affair, and it may say anything."""
    said = f"{error} is missing" if isinstance(error, KeyError) else "it is nested too deep" if isinstance(error, RecursionError) else \
        str(error).strip().splitlines()[0]
    where = re.search(r"^On instance(.*):$", str(error), re.M)      # of a ValidationError
    said = (said if len(said) <= 100 else said[:97] + "...") + (f" (at {where[1][:100]})" if where and where[1] else "")
    return CellFailed(f"no notebook can hold an output of it: {said}")


def picture_of(output):
    """Its PNG, or None."""
    picture = output.get("data", {}).get("image/png")
    return base64.b64decode("".join(picture)) if picture else None      # text may be a list of lines


def check_depth(value):
    """RecursionError when it is nested deeper than DEPTH_MAX."""
    level = [value]
    for _ in range(DEPTH_MAX + 1):
        held = [list(v.values()) if isinstance(v, dict) else v for v in level if isinstance(v, (dict, list))]
        if not held:
            return
        level = [v for values in held for v in values]
    raise RecursionError


def fault_of(output):
    """CellFailed when no notebook can hold that output, else None."""
    try:
        check_depth(output)
        json.dumps(output, ensure_ascii=False).encode()     # half a surrogate pair is no character
        nbformat.validate(nbformat.from_dict(output), ref=output["output_type"], version=4)
        picture_of(output)
    except UNFIT as error:
        return unfit(error)
    return None


def keep(cell, outputs):
    """Gives the cell what a notebook can hold; CellFailed for the first output that is left out, or None."""
    faults = [fault_of(output) for output in outputs]
    sound = [output for output, fault in zip(outputs, faults) if not fault]
    cell.outputs = [nbformat.from_dict(output) for output in join_streams(sound)]
    if type(cell.execution_count) is not int or cell.execution_count < 0:
        cell.execution_count = None
    return next(filter(None, faults), None)


class Progress:
    """One line per code cell; the upload cell is none of them."""

    def __init__(self, total):
        self.total = total
        self.number = 0
        self.cell = None        # that runs

    def begins(self, cell):
        self.number += 1
        self.cell = cell
        self.began = time.monotonic()

    def name(self):
        return f"cell {self.number}" if self.number else "the upload cell"

    def done(self):
        seconds, source = time.monotonic() - self.began, self.cell.source
        kinds = []
        for output in self.cell.outputs:
            data = output.get("data", {})
            kinds.append("picture" if "image/png" in data else "table" if "text/html" in data else
                         {"stream": "text", "error": "error"}.get(output["output_type"], "value"))
        said = ", ".join(dict.fromkeys(kinds)) or "nothing"
        first = source.strip().splitlines()[0][:44] if source.strip() else ""
        print(f"      cell {self.number:2d}/{self.total}  {seconds:5.1f} s  {first:44s}  {said}", flush=True)
        self.cell = None


def judge(reply, cell=None):
    """Raises CellFailed when the reply says that the cell did not end well; tagged `raises-exception` it may raise.

    Not all that ends a cell leaves an error among its outputs: the server replies itself for a kernel that died, or that
    did not reply, and marks that as `synthetic`. No tag of a cell allows those."""
    content = reply["content"]
    status, name, said = content.get("status"), content.get("ename", ""), content.get("evalue", "")
    synthetic = reply.get("metadata", {}).get("holdcell", {}).get("synthetic", False)
    if status == "ok" or (status == "error" and not synthetic and cell is not None and may_fail(cell)):
        return
    if status != "error":
        raise CellFailed(f"it was not run to its end, the kernel's reply has status {status!r}")
    raise CellFailed(said if synthetic and said and name != "KeyboardInterrupt" else
                     ": ".join(filter(None, (name, said))) or "the kernel's reply has status 'error' and no name for it")


def too_long(args):
    return CellFailed(f"it did not end within {args.timeout:g} s (--timeout)")


def execute(kernel, source, args, outputs, said=lambda count: None, **options):
    """JupyterKernelClient.execute(), with the whole reply, and with the outputs of a cell that gets none."""
    from jupyter_kernel_client.client import output_hook

    def heard(message):
        if message["header"]["msg_type"] == "execute_input":
            said(message["content"].get("execution_count"))
        try:
            output_hook(outputs, message)
        except UNFIT as error:
            raise unfit(error) from None

    try:
        return kernel.execute_interactive(source, timeout=args.timeout, output_hook=heard, allow_stdin=False, **options)
    except TimeoutError:
        if not kernel.is_alive():       # raises when nobody answers: then it is not the cell's doing
            raise CellFailed("its kernel is gone from the server") from None
        raise too_long(args) from None
    finally:
        for output in outputs:
            output.pop("transient", None)


def kernel_client(args):
    """JupyterKernelClient for the address, and with what it lacks."""
    from jupyter_kernel_client import JupyterKernelClient
    from jupyter_kernel_client.manager import KernelHttpManager
    from jupyter_kernel_client.wsclient import KernelWebSocketClient

    class Socket(KernelWebSocketClient):
        """Who waits for a message is told when the connection ends: it looks for that only when one has come."""

        def _on_close(self, *why):
            super()._on_close(*why)
            self._message_received.set()

        def _recv_reply(self, msg_id, timeout=None, channel="shell"):
            end = time.monotonic() + (threading.TIMEOUT_MAX if timeout is None else timeout)
            while True:
                left = end - time.monotonic()
                try:
                    return super()._recv_reply(msg_id, timeout=max(0, min(left, 0.5)), channel=channel)
                except TimeoutError:
                    if not self.connection_ready.is_set():
                        raise RuntimeError("Connection was lost.") from None
                    if left <= 0:
                        raise

    class Manager(KernelHttpManager):
        client_factory = Socket

    class Client(JupyterKernelClient):
        kernel_manager_class = Manager

        def __exit__(self, kind, error, trace):
            try:
                self.stop()
            except Exception:
                self._manager = None    # or it is asked again by __del__, which tells of it at length
                if error is None:
                    raise           # else that is why, and who is asked to end the kernel is not there either

    return Client(server_url=args.url, token=args.token)


def run_with_kernel_client(notebook, upload, args, progress):
    with kernel_client(args) as kernel:
        if upload:
            judge(execute(kernel, upload, args, [], store_history=False))
        for cell in notebook.cells:
            if cell.cell_type != "code" or not cell.source.strip():
                continue
            progress.begins(cell)
            outputs, fault = [], None
            try:
                counted = functools.partial(cell.__setitem__, "execution_count")
                reply = execute(kernel, cell.source, args, outputs, counted)
            finally:
                fault = keep(cell, outputs)
                progress.done()
            judge(reply, cell)
            if fault:
                raise fault


def gateway_manager(args):
    """jupyter_server's class for kernels of a server, with the address, and with what it lacks."""
    import websocket
    from jupyter_server.gateway.gateway_client import GatewayClient
    from jupyter_server.gateway.managers import GatewayKernelManager
    from tornado.web import HTTPError

    class Manager(GatewayKernelManager):
        async def _async_is_alive(self):
            # What it inherits asks for a process of this machine: an AssertionError in place of a time-out.
            return await self.is_alive()

        async def is_alive(self):
            try:
                return await super().is_alive()
            except HTTPError as error:
                if error.status_code < 500:
                    raise
                return False        # of a server that is gone; else nbclient's clearing up fails, and hides why

    GatewayClient.instance().url = args.url
    if args.token:
        GatewayClient.instance().auth_token = args.token
        # Its WebSocket would carry no token.
        websocket.create_connection = functools.partial(websocket.create_connection,
                                                        header=[f"Authorization: token {args.token}"])
    return Manager


class Interrupt:
    """Ctrl-C while nbclient runs: its own handler takes the kernel from under the cell, and any error follows."""

    def __init__(self):
        self.came = False

    def listen(self, notebook):
        task = asyncio.current_task()

        def come():
            self.came = True
            task.cancel()
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, come)


def run_with_nbclient(notebook, upload, args, progress):
    from nbclient import NotebookClient
    from nbclient.exceptions import CellTimeoutError

    if upload:
        notebook.cells.insert(0, nbformat.v4.new_code_cell(upload))
    interrupt = Interrupt()

    def started(cell, cell_index):
        if not upload or cell_index > 0:
            progress.begins(cell)

    def executed(cell, cell_index, execute_reply):
        if progress.cell:
            progress.done()
        judge(execute_reply, cell)
        if fault := next(filter(None, map(fault_of, cell.outputs)), None):
            raise fault

    class Client(NotebookClient):
        def process_message(self, *what):
            try:
                return super().process_message(*what)
            except UNFIT as error:
                raise unfit(error) from None

    client = Client(notebook, timeout=args.timeout, kernel_manager_class=gateway_manager(args),
                    on_notebook_start=interrupt.listen, on_cell_execute=started, on_cell_executed=executed,
                    coalesce_streams=True)
    try:
        client.execute()
    except CellTimeoutError:
        raise too_long(args) from None
    except (Exception, asyncio.CancelledError):
        if interrupt.came:
            raise KeyboardInterrupt from None
        raise
    finally:
        if progress.cell:
            progress.done()
        if upload:
            notebook.cells.pop(0)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.metadata.pop("execution", None)
                keep(cell, cell.outputs)


def write_pictures(notebook, out, name):
    paths = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            picture = picture_of(output)
            if picture:
                path = out / f"{name}-{len(paths) + 1}.png"
                path.write_bytes(picture)
                paths.append(path)
    return paths


def write_page(notebook, out, name):
    from nbconvert import HTMLExporter

    with warnings.catch_warnings():
        # Of colours: without IPython, IPython's code is coloured as Python, and a language that nobody knows not at all.
        warnings.filterwarnings("ignore", category=UserWarning, module=r"nbconvert\.")
        page, _ = HTMLExporter().from_notebook_node(notebook)
    path = out / f"{name}.html"
    path.write_text(page, encoding="utf-8")
    return path


def summary(notebook):
    """What the cells tagged `summary` printed."""
    lines = []
    for cell in notebook.cells:
        if "summary" in cell.metadata.get("tags", []):
            for output in cell.get("outputs", []):
                lines += output.get("text", "").splitlines()
    return lines


def relative(path):
    text = os.path.relpath(path)
    return text if not text.startswith("..") else str(path)


def explained(error):
    """One line, and what to do about it where that is known."""
    text = str(error) or type(error).__name__
    if text in ("Response router had finished", "Kernel died", "Connection was lost."):
        return "the connection to its kernel was lost"
    if "401" in text:
        return text + "\n(a token is needed: --token or HOLDCELL_TOKEN)"
    if "Connection refused" in text or "Max retries" in text:
        return f"nothing answers there\n({text})"
    return text


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebook", type=pathlib.Path)
    parser.add_argument("--url", required=True, help="the server, http://127.0.0.1:8888")
    parser.add_argument("--token", default=os.environ.get("HOLDCELL_TOKEN", ""), help="its token (HOLDCELL_TOKEN)")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out"), help="folder of the results (out)")
    parser.add_argument("--client", choices=("kernel", "nbclient"), default="kernel",
                        help="jupyter_kernel_client (kernel), or nbclient")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for one cell (300)")
    return parser.parse_args(argv)


def read_notebook(path):
    """The notebook, without the outputs of an earlier run: what is written is what this one came to."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)      # cells without an id get one
            notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        nbformat.writes(notebook).encode()
    except (OSError, nbformat.reader.NotJSONError) as error:
        raise SystemExit(f"Error: {path} cannot be read: {str(error).strip().splitlines()[0]}") from None
    except Exception as error:      # whatever nbformat comes to with JSON that is no notebook
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise SystemExit(f"Error: {path} cannot be read: it is no notebook ({said})") from None
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return notebook


def run(notebook, upload, args, progress):
    """Exit status, and why it is not 0."""
    client = run_with_kernel_client if args.client == "kernel" else run_with_nbclient
    try:
        client(notebook, upload, args, progress)
        return 0, None
    except CellFailed as failure:
        return 1, f"{args.notebook}, {progress.name()}: {failure}"
    except KeyboardInterrupt:
        return 130, f"{args.notebook} was interrupted" + (f" in {progress.name()}" if progress.number else "")
    except Exception as error:
        # Three client libraries, each with errors of its own; HOLDCELL_DEBUG=1 shows where it was.
        if os.environ.get("HOLDCELL_DEBUG"):
            raise
        end = f" to its end, it came to {progress.name()}" if progress.number else ""
        return 2, f"{args.url} did not run the notebook{end}: {explained(error)}"


def write_notebook(notebook, path):
    """The whole of it, or what was there before."""
    text = nbformat.writes(notebook).rstrip("\n") + "\n"
    begun = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        begun.write_text(text, encoding="utf-8")
        begun.replace(path)
    finally:
        begun.unlink(missing_ok=True)


def write_results(notebook, out, name):
    out.mkdir(parents=True, exist_ok=True)
    for old in list(out.iterdir()):
        if re.fullmatch(re.escape(name) + r"-[0-9]+\.png", old.name):     # of an earlier run
            old.unlink()
    executed = out / f"{name}.ipynb"
    write_notebook(notebook, executed)
    page = write_page(notebook, out, name)
    pictures = write_pictures(notebook, out, name)
    print(f"\n      notebook  {relative(executed)}")
    print(f"      page      {relative(page)}")
    print(f"      pictures  {', '.join(relative(p) for p in pictures) or 'none'}\n")
    for line in summary(notebook):
        print(f"      {line}")


def main(argv=None):
    args = parse(argv)
    notebook = read_notebook(args.notebook)
    try:
        upload = upload_cell(notebook, args.notebook.resolve().parent)
    except ValueError as error:
        raise SystemExit(f"Error: {args.notebook}: {error}") from None
    code_cells = sum(cell.cell_type == "code" and bool(cell.source.strip()) for cell in notebook.cells)
    progress = Progress(code_cells)
    status, why = run(notebook, upload, args, progress)
    if came := status == 0 or progress.number > 0:
        nbformat.validate(notebook)
        write_results(notebook, args.out, args.notebook.stem)
    if why:
        print(("\n" if came else "") + f"Error: {why}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
