#!/usr/bin/env python3
"""Runs a notebook through a Jupyter server with an unmodified client library.

    run_notebook.py NOTEBOOK --url http://127.0.0.1:8888 [--token T] [--out DIR]
                    [--client kernel|nbclient] [--timeout SECONDS]

--client kernel is jupyter_kernel_client, --client nbclient is nbclient over
jupyter_server's GatewayKernelManager. The token may be in HOLDCELL_TOKEN instead.
The packages of tests/requirements/client.txt have to be there.

Writes DIR/NAME.ipynb (executed), DIR/NAME.html and DIR/NAME-1.png, ...

The upload cell. A session starts with an empty home. A notebook names the files that
it reads in its metadata ({"holdcell": {"data": ["file.csv"]}}, files of the folder
data/ beside it); a cell that writes them is run first, in the same kernel, and is not
part of the result.
"""

import argparse
import base64
import functools
import os
import pathlib
import re
import sys
import time
import zlib

import nbformat

UPLOAD = '''\
import base64, pathlib, zlib
for name, text in {files!r}.items():
    path = pathlib.Path("data", name)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(zlib.decompress(base64.b64decode(text)))
'''


def upload_cell(notebook, folder):
    """Code that brings the notebook's data into the session, or None."""
    names = notebook.metadata.get("holdcell", {}).get("data", [])
    files = {}
    for name in names:
        if pathlib.PurePath(name).name != name:
            raise SystemExit(f"{name}: data files lie directly in the folder data/")
        if not (folder / "data" / name).is_file():
            raise SystemExit(f"Error: {folder / 'data' / name} is missing: the notebook needs it")
        files[name] = base64.b64encode(zlib.compress((folder / "data" / name).read_bytes(), 9)).decode()
    return UPLOAD.format(files=files) if files else None


def may_fail(cell):
    return "raises-exception" in cell.metadata.get("tags", [])


def join_streams(outputs):
    """Neighbouring pieces of one stream as one output, with \\r and \\b applied as a terminal does."""
    joined = []
    for output in outputs:
        if joined and output["output_type"] == "stream" == joined[-1]["output_type"] and \
                output["name"] == joined[-1]["name"]:
            joined[-1]["text"] += output["text"]
        else:
            joined.append(dict(output))
    for output in joined:
        if output["output_type"] == "stream":
            output["text"] = re.sub(r"^.*\r(?!\n|$)", "", output["text"], flags=re.M)
    return joined


class Progress:
    """One line per code cell."""

    def __init__(self, total):
        self.total = total
        self.number = 0

    def done(self, source, seconds, outputs):
        self.number += 1
        kinds = []
        for output in outputs:
            data = output.get("data", {})
            kinds.append("picture" if "image/png" in data else "table" if "text/html" in data else
                         {"stream": "text", "error": "error"}.get(output["output_type"], "value"))
        said = ", ".join(dict.fromkeys(kinds)) or "nothing"
        first = source.strip().splitlines()[0][:44] if source.strip() else ""
        print(f"      cell {self.number:2d}/{self.total}  {seconds:5.1f} s  {first:44s}  {said}", flush=True)


def run_with_kernel_client(notebook, upload, args, progress):
    from jupyter_kernel_client import JupyterKernelClient

    with JupyterKernelClient(server_url=args.url, token=args.token) as kernel:
        if upload:
            reply = kernel.execute(upload, store_history=False, timeout=args.timeout)
            if reply["status"] != "ok":
                raise SystemExit(f"the upload cell failed: {reply}")
        for cell in notebook.cells:
            if cell.cell_type != "code" or not cell.source.strip():
                continue
            began = time.monotonic()
            reply = kernel.execute(cell.source, timeout=args.timeout)
            outputs = join_streams(reply["outputs"])
            cell.outputs = [nbformat.from_dict(output) for output in outputs]
            cell.execution_count = reply["execution_count"]
            progress.done(cell.source, time.monotonic() - began, outputs)
            if reply["status"] != "ok" and not may_fail(cell):
                return False
    return True


def run_with_nbclient(notebook, upload, args, progress):
    import websocket
    from jupyter_server.gateway.gateway_client import GatewayClient
    from jupyter_server.gateway.managers import GatewayKernelManager
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    GatewayClient.instance().url = args.url
    if args.token:
        GatewayClient.instance().auth_token = args.token
        # Its WebSocket would carry no token.
        websocket.create_connection = functools.partial(websocket.create_connection,
                                                        header=[f"Authorization: token {args.token}"])
    if upload:
        notebook.cells.insert(0, nbformat.v4.new_code_cell(upload))
    began = {}

    def started(cell, cell_index):
        began[cell_index] = time.monotonic()

    def executed(cell, cell_index, execute_reply):
        if not (upload and cell_index == 0):
            progress.done(cell.source, time.monotonic() - began[cell_index], cell.outputs)

    client = NotebookClient(notebook, timeout=args.timeout, kernel_manager_class=GatewayKernelManager,
                            on_cell_execute=started, on_cell_executed=executed, coalesce_streams=True)
    try:
        client.execute()
        return True
    except CellExecutionError:
        return False
    finally:
        if upload:
            notebook.cells.pop(0)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.metadata.pop("execution", None)
                cell.outputs = [nbformat.from_dict(output) for output in join_streams(cell.outputs)]


def write_pictures(notebook, out, name):
    paths = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            picture = output.get("data", {}).get("image/png")
            if picture:
                path = out / f"{name}-{len(paths) + 1}.png"
                path.write_bytes(base64.b64decode(picture))
                paths.append(path)
    return paths


def write_page(notebook, out, name):
    from nbconvert import HTMLExporter

    page, _ = HTMLExporter().from_notebook_node(notebook)
    path = out / f"{name}.html"
    path.write_text(page, encoding="utf-8")
    return path


def summary(notebook):
    """What the cells tagged `summary` printed."""
    lines = []
    for cell in notebook.cells:
        if "summary" in cell.metadata.get("tags", []):
            for output in cell.outputs:
                lines += output.get("text", "").splitlines()
    return lines


def relative(path):
    text = os.path.relpath(path)
    return text if not text.startswith("..") else str(path)


def explained(error):
    """One line, and what to do about it where that is known."""
    text = str(error) or type(error).__name__
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


def main(argv=None):
    args = parse(argv)
    try:
        notebook = nbformat.read(args.notebook, as_version=4)
    except (OSError, nbformat.reader.NotJSONError) as error:
        raise SystemExit(f"Error: {args.notebook} cannot be read: {error}") from None
    name = args.notebook.stem
    upload = upload_cell(notebook, args.notebook.resolve().parent)
    code_cells = sum(cell.cell_type == "code" and bool(cell.source.strip()) for cell in notebook.cells)
    run = run_with_kernel_client if args.client == "kernel" else run_with_nbclient
    try:
        ok = run(notebook, upload, args, Progress(code_cells))
    except Exception as error:
        # Three client libraries, each with errors of its own; HOLDCELL_DEBUG=1 shows where it was.
        if os.environ.get("HOLDCELL_DEBUG"):
            raise
        print(f"Error: {args.url} did not run the notebook: {explained(error)}", file=sys.stderr)
        return 2

    nbformat.validate(notebook)
    args.out.mkdir(parents=True, exist_ok=True)
    for old in args.out.glob(f"{name}-*.png"):
        old.unlink()
    executed = args.out / f"{name}.ipynb"
    nbformat.write(notebook, executed)
    page = write_page(notebook, args.out, name)
    pictures = write_pictures(notebook, args.out, name)

    print(f"\n      notebook  {relative(executed)}")
    print(f"      page      {relative(page)}")
    print(f"      pictures  {', '.join(relative(p) for p in pictures) or 'none'}\n")
    for line in summary(notebook):
        print(f"      {line}")
    if not ok:
        failed = next(o for c in notebook.cells for o in c.get("outputs", []) if o["output_type"] == "error")
        print(f"\nError: a cell failed: {failed['ename']}: {failed['evalue']}", file=sys.stderr)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
