"""The example notebooks through the real server, with unmodified client libraries."""

import base64
import functools
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys

import nbformat
import pytest

import look_at_executed
from server import SLOW, Server, wait_for

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "notebooks"))
import run_notebook  # noqa: E402

NOTEBOOKS = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def with_token():
    server = Server().start()
    yield server
    server.close()


@pytest.fixture(scope="module")
def without_token():
    server = Server(token="").start()
    yield server
    server.close()


def words(server, client, out, notebook, *options):
    said = [sys.executable, ROOT / "notebooks/run_notebook.py", notebook, "--url", f"http://127.0.0.1:{server.port}",
            "--out", out, "--client", client, *options]
    return said + ["--token", server.token] if server.token else said


def run(server, name, client, out, notebook=None, *options):
    said = words(server, client, out, notebook or ROOT / f"notebooks/{name}.ipynb", *options)
    # The environment of the clients has no IPython, that of the tests has.
    out.mkdir(parents=True, exist_ok=True)
    (out / "IPython.py").write_text("raise ModuleNotFoundError('No module named IPython')\n")
    return subprocess.run(said, capture_output=True, text=True, timeout=600, env={**os.environ, "PYTHONPATH": str(out)})


def write(path, *cells, **metadata):
    """A notebook of code cells, each with the output of an earlier run."""
    notebook = nbformat.v4.new_notebook(metadata=metadata)
    for source in cells:
        tags = {"tags": ["raises-exception"]} if source.startswith("# may fail") else {}
        stale = nbformat.v4.new_output("stream", name="stdout", text="of an earlier run")
        notebook.cells.append(nbformat.v4.new_code_cell(source, metadata=tags, outputs=[stale], execution_count=77))
    nbformat.write(notebook, path)
    return path


def printed(path):
    """What each cell printed, notices of the server aside."""
    cells = nbformat.read(path, as_version=4).cells
    return ["".join(o.get("text", "") for o in c.outputs if o.get("name") == "stdout") for c in cells]


def outputs(notebook, kind):
    return [o for c in notebook.cells for o in c.get("outputs", []) if o.output_type == kind]


def with_data(notebook, mime):
    return [o.data[mime] for c in notebook.cells for o in c.get("outputs", []) if mime in o.get("data", {})]


@pytest.mark.parametrize("client, name", [
    # each once in the quick tier, that of quickstart.sh by its suite
    pytest.param(client, name, marks=() if (client, name) in (("nbclient", "births"), ("kernel", "economy")) else pytest.mark.full)
    for client in ("kernel", "nbclient") for name in NOTEBOOKS])
def test_a_notebook_runs_to_its_end(request, tmp_path, name, client):
    server = request.getfixturevalue("with_token" if client == "kernel" else "without_token")
    done = run(server, name, client, tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr + server.log()[-2000:]
    executed = nbformat.read(tmp_path / f"{name}.ipynb", as_version=4)
    nbformat.validate(executed)
    assert look_at_executed.faults(executed) == []
    assert outputs(executed, "error") == []     # their errors are handled in the cell
    pictures = with_data(executed, "image/png")
    files = [(tmp_path / f"{name}-{number}.png").read_bytes() for number in range(1, len(pictures) + 1)]
    assert files == [base64.b64decode(p) for p in pictures]
    assert len(list(tmp_path.glob(f"{name}-*.png"))) == len(pictures)
    assert (tmp_path / f"{name}.html").read_text().count("data:image/png") >= len(pictures)
    # the notebook is the committed one, cell by cell, with outputs
    source = nbformat.read(ROOT / f"notebooks/{name}.ipynb", as_version=4)
    assert [(c.id, c.source) for c in executed.cells] == [(c.id, c.source) for c in source.cells]
    assert server.request("GET", "/api/kernels").json() == [], "its kernel is left"


@pytest.mark.full
def test_the_two_clients_find_the_same_numbers(with_token, tmp_path):
    texts = []
    for client in ("kernel", "nbclient"):
        assert run(with_token, "births", client, tmp_path / client).returncode == 0
        executed = nbformat.read(tmp_path / client / "births.ipynb", as_version=4)
        texts.append([o.text for o in outputs(executed, "stream")])
    assert texts[0] == texts[1]


@pytest.mark.parametrize("client", ["kernel", "nbclient"])
def test_a_failing_cell_is_reported_and_kept(request, tmp_path, client):
    server = request.getfixturevalue("with_token" if client == "kernel" else "without_token")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("print('before')"),
                                               nbformat.v4.new_code_cell("1 / 0"),
                                               nbformat.v4.new_code_cell("print('never')")])
    nbformat.write(notebook, tmp_path / "broken.ipynb")
    done = run(server, "broken", client, tmp_path / "out", tmp_path / "broken.ipynb")
    assert done.returncode == 1
    assert done.stderr == f"\nError: {tmp_path / 'broken.ipynb'}, cell 2: ZeroDivisionError: division by zero\n"
    assert "never" not in (tmp_path / "out/broken.ipynb").read_text().replace("print('never')", "")


def test_the_notebooks_are_committed_without_outputs():
    for name in NOTEBOOKS:
        text = json.loads((ROOT / f"notebooks/{name}.ipynb").read_text())
        assert (text["nbformat"], text["nbformat_minor"]) == (4, 5)
        for cell in text["cells"]:
            assert cell["id"] and not cell.get("outputs") and cell.get("execution_count") is None


def test_each_data_file_is_described_and_small():
    described = (ROOT / "notebooks/README.md").read_text()
    for path in (ROOT / "notebooks/data").glob("*.csv"):
        assert path.name in described
        assert path.stat().st_size < 500_000


def test_a_server_that_is_not_there_is_said_in_one_line(tmp_path):
    class Nowhere:
        port, token = 9, "x"

    done = run(Nowhere, NOTEBOOKS[0], "kernel", tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("Error: ") and "Traceback" not in done.stderr


@pytest.mark.parametrize("client", ["kernel", pytest.param("nbclient", marks=pytest.mark.full)])
@pytest.mark.parametrize("wrong, said", [
    ({"token": "wrong"}, "a token is needed"),
    ({"port": 1}, "did not run the notebook"),
    ({"notebook": "data/make_data.py"}, "cannot be read"),
    ({"notebook": "none.ipynb"}, "cannot be read"),
], ids=lambda v: str(v))
def test_what_goes_wrong_is_said_without_a_traceback(with_token, tmp_path, client, wrong, said):
    class Wrong:
        token, port = wrong.get("token", with_token.token), wrong.get("port", with_token.port)
    got = run(Wrong, "weather", client, tmp_path, ROOT / "notebooks" / wrong.get("notebook", "weather.ipynb"))
    assert got.returncode != 0
    assert said in got.stderr and "Traceback" not in got.stderr


ABORTS = """k = get_ipython().kernel
async def aborted(*a, **b): return {"status": "aborted", "execution_count": 5}
k.do_execute = aborted; """
SILENT = """send = get_ipython().kernel.session.send
def silent(stream, what, *a, **b):
    return None if what in ("execute_reply", "error") else send(stream, what, *a, **b)
get_ipython().kernel.session.send = silent
"""
DIES = "import os; os._exit(3)"
DIED = "the kernel died: exited with code 3"
WAYS = {
    "its kernel dies": ("", DIES, DIED),
    "it takes too long": ("", "print('began', flush=True); import time; time.sleep(600)", "it did not end within 10 s (--timeout)"),
    "it is aborted": (ABORTS, "print('it')", "it was not run to its end, the kernel's reply has status 'aborted'"),
    "nobody replies": ("", SILENT, "the kernel ended the cell without a reply"),
    "its kernel dies where it may raise": ("", "# may fail\n" + DIES, DIED),
}


@pytest.mark.parametrize("client, way", [
    pytest.param(client, way, marks=() if way == "its kernel dies" or (client, way) == ("nbclient", "it takes too long")
                 else pytest.mark.full) for client in ("kernel", "nbclient") for way in WAYS])
def test_a_cell_that_ends_without_an_error_among_its_outputs_is_told_in_one_line(with_token, tmp_path, client, way):
    before, cell, why = WAYS[way]
    source = write(tmp_path / "ends.ipynb", before + "print(6 * 7)", cell, "print('never')")
    done = run(with_token, "ends", client, tmp_path / "out", source, "--timeout", "10" if "long" in way else "100")
    assert (done.returncode, done.stderr) == (1, f"\nError: {source}, cell 2: {why}\n")
    assert printed(tmp_path / "out/ends.ipynb") == ["42\n", "began\n" if "long" in way else "", ""]
    assert (tmp_path / "out/ends.html").exists()
    assert "cell  2/3" in done.stdout and "cell  3/3" not in done.stdout
    assert with_token.request("GET", "/api/kernels").json() == [], "its kernel is left"


SAYS = """import functools, json
k = get_ipython().kernel
k.session.pack = lambda message: json.dumps(message, default=str).encode()      # as characters of ASCII
sent = k.send_response(k.iopub_socket, {!r}, {!r})
"""


class Code(str):
    """Of an object that has no short literal, or none that the kernel would send by itself."""

    __repr__ = str.__str__


MISFITS = {
    "a bundle that is none": ("display_data", {"data": [], "metadata": {}}, "[] is not of type 'object' (at ['data'])"),
    "metadata that are none": ("display_data", {"data": {}, "metadata": None}, "None is not of type 'object' (at ['metadata'])"),
    "a stream of numbers": ("stream", {"name": "stdout", "text": 7}, "7 is not valid under any of the given schemas (at ['text'])"),
    "an error without words": ("error", {"ename": 1, "evalue": "", "traceback": []}, "1 is not of type 'string' (at ['ename'])"),
    "a count that is none": ("execute_result", {"data": {}, "metadata": {}, "execution_count": "x"},
                             "'x' is not of type 'integer', 'null' (at ['execution_count'])"),
    "an endless value": ("display_data", {"data": {"a/b": [["x" * 4000]]}, "metadata": {}}, "[['" + "x" * 94 + "... (at ['data']['a/b'])"),
    "a nest": ("display_data", Code('{"data": {"a/json": functools.reduce(lambda inner, _: [inner], range(499), [])}, "metadata": {}}'),
               "it is nested too deep"),
    "half a character": ("display_data", Code('{"data": {"text/plain": chr(0xd800)}, "metadata": {}}'),
                         "'utf-8' codec can't encode character '\\ud800' in position 72: surrogates not allowed"),
    "a picture that is none": ("display_data", {"data": {"image/png": "abcde"}, "metadata": {}},
                               "Invalid base64-encoded string: number of data characters (5) cannot be 1 more than a multiple of 4"),
}


@pytest.mark.parametrize("client, misfit", [
    pytest.param(client, misfit, marks=() if misfit == "a bundle that is none" else pytest.mark.full)
    for client in ("kernel", "nbclient") for misfit in MISFITS])
def test_an_output_that_fits_into_no_notebook_is_told_with_its_cell_and_the_notebook_is_kept(with_token, tmp_path, client, misfit):
    kind, content, why = MISFITS[misfit]
    source = write(tmp_path / "misfit.ipynb", "print(6 * 7)", SAYS.format(kind, content), "print('never')")
    done = run(with_token, "misfit", client, tmp_path / "out", source)
    assert (done.returncode, done.stderr) == (1, f"\nError: {source}, cell 2: no notebook can hold an output of it: {why}\n")
    nbformat.validate(nbformat.read(tmp_path / "out/misfit.ipynb", as_version=4))
    assert printed(tmp_path / "out/misfit.ipynb") == ["42\n", "", ""]
    assert (tmp_path / "out/misfit.html").exists()
    assert with_token.request("GET", "/api/kernels").json() == [], "its kernel is left"


@pytest.mark.full
@pytest.mark.parametrize("client", ["kernel", "nbclient"])
def test_a_text_in_lines_and_a_foreign_count_do_no_harm(with_token, tmp_path, client):
    lines = SAYS.format("display_data", {"data": {"text/plain": ["a\n", "b"]}, "metadata": {}})
    source = write(tmp_path / "odd.ipynb", lines, SAYS.format("execute_input", {"code": "", "execution_count": "x"}), "print(6 * 7)")
    done = run(with_token, "odd", client, tmp_path / "out", source)
    assert (done.returncode, done.stderr) == (0, "")
    assert printed(tmp_path / "out/odd.ipynb")[2] == "42\n"


@pytest.mark.full
@pytest.mark.parametrize("client", ["kernel", "nbclient"])
def test_a_cell_that_may_raise_may(with_token, tmp_path, client):
    source = write(tmp_path / "may.ipynb", "# may fail\n1 / 0", "print(6 * 7)")
    done = run(with_token, "may", client, tmp_path / "out", source)
    assert (done.returncode, done.stderr) == (0, "")
    assert printed(tmp_path / "out/may.ipynb") == ["", "42\n"]


def during(server, tmp_path, client, cell, act, *options):
    """Runs a notebook, and act(process, kernel's id) while its second cell runs."""
    source = write(tmp_path / "long.ipynb", "print(6 * 7)", cell + "print('began', flush=True); import time; time.sleep(600)")
    process = subprocess.Popen(words(server, client, tmp_path / "out", source, *options), text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               # a shell's child in the background would not hear it
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    try:
        assert "cell  1/2" in process.stdout.readline()
        kernel = wait_for(lambda: next((k for k in server.request("GET", "/api/kernels").json()
                                        if k["execution_state"] == "busy"), None))
        act(process, kernel["id"])
        out, err = process.communicate(timeout=120 * SLOW)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    assert "Traceback" not in err and err.count("Error: ") == 1, err
    assert printed(tmp_path / "out/long.ipynb")[0] == "42\n"
    return process.returncode, err.strip()


@pytest.mark.full
@pytest.mark.parametrize("client", ["kernel", "nbclient"])
def test_an_interrupt_by_somebody_else_is_told(with_token, tmp_path, client):
    def interrupt(process, kernel):
        assert with_token.interrupt(kernel) == 204
    status, said = during(with_token, tmp_path, client, SILENT, interrupt)
    assert status == 1 and said.startswith(f"Error: {tmp_path / 'long.ipynb'}, cell 2: KeyboardInterrupt")


@pytest.mark.parametrize("client", ["kernel", pytest.param("nbclient", marks=pytest.mark.full)])
def test_ctrl_c_ends_it_with_what_there_is(with_token, tmp_path, client):
    status, said = during(with_token, tmp_path, client, "", lambda process, kernel: process.send_signal(signal.SIGINT))
    assert (status, said) == (130, f"Error: {tmp_path / 'long.ipynb'} was interrupted in cell 2")
    assert with_token.request("GET", "/api/kernels").json() == [], "its kernel is left"


@pytest.mark.full
@pytest.mark.parametrize("client", ["kernel", "nbclient"])
def test_a_server_that_goes_in_the_middle_is_told_as_the_server_s(tmp_path, client):
    server = Server().start()
    try:
        status, said = during(server, tmp_path, client, "", lambda process, kernel: server.stop(), "--timeout", "20")
    finally:
        server.close()
    assert status == 2 and said.startswith(f"Error: http://127.0.0.1:{server.port} did not run the notebook to its end, "
                                           "it came to cell 2: ")


@pytest.mark.parametrize("client", ["kernel", pytest.param("nbclient", marks=pytest.mark.full)])
@pytest.mark.parametrize("replied", [False, pytest.param(True, marks=pytest.mark.full)], ids=["in a cell", "before its reply"])
def test_a_server_that_dies_in_a_cell_is_told_long_before_the_time_out(tmp_path, client, replied):
    server = Server().start()
    try:
        cell = SILENT.replace('("execute_reply", "error")', '("execute_reply",)') if replied else ""
        status, said = during(server, tmp_path, client, cell, lambda process, kernel: server.proc.kill(), "--timeout", "100000")
    finally:
        server.close()
    assert (status, said) == (2, f"Error: http://127.0.0.1:{server.port} did not run the notebook to its end, it came to cell 2: "
                                 "the connection to its kernel was lost")


@pytest.mark.full
@pytest.mark.parametrize("client", ["kernel", "nbclient"])
def test_a_kernel_that_the_server_s_limit_took_along_is_told(tmp_path, client):
    server = Server("--cell-timeout", "3").start()
    try:
        deaf = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
        source = write(tmp_path / "deaf.ipynb", "print(6 * 7)", deaf + "import time; time.sleep(600)")
        done = run(server, "deaf", client, tmp_path / "out", source)
    finally:
        server.close()
    assert done.returncode == 1 and done.stderr.startswith(f"\nError: {source}, cell 2: ") and "Traceback" not in done.stderr
    assert printed(tmp_path / "out/deaf.ipynb") == ["42\n", ""]


@pytest.mark.full
@pytest.mark.parametrize("client", ["kernel", "nbclient"])
def test_an_upload_cell_that_fails_is_told(tmp_path, client):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/big.bin").write_bytes(random.Random(1).randbytes(3 << 20))
    source = write(tmp_path / "up.ipynb", "print(6 * 7)", holdcell={"data": ["big.bin"]})
    server = Server("--disk-mb", "1").start()
    try:
        done = run(server, "up", client, tmp_path / "out", source)
    finally:
        server.close()
    assert done.returncode == 1 and done.stderr.startswith(f"Error: {source}, the upload cell: OSError: [Errno 28]"), done.stderr


SAVED_BY_LAB = {
    "kernelspec": {"display_name": "Python (conda)", "language": "python", "name": "conda-env-of-mine-py"},
    "language_info": {"codemirror_mode": {"name": "ipython", "version": 3}, "file_extension": ".py", "mimetype": "text/x-python",
                      "name": "python", "nbconvert_exporter": "python", "pygments_lexer": "ipython3", "version": "3.12.1"},
}


@pytest.mark.parametrize("client", ["kernel", pytest.param("nbclient", marks=pytest.mark.full)])
@pytest.mark.parametrize("metadata", [
    pytest.param(SAVED_BY_LAB, id="saved by JupyterLab with a kernel of its machine"),
    pytest.param({}, id="no metadata", marks=pytest.mark.full),
    pytest.param({"language_info": {"name": "nobody-knows-it"}}, id="an unknown language", marks=pytest.mark.full)])
def test_whatever_a_notebook_says_of_its_language_and_kernel_it_runs_without_a_warning(with_token, tmp_path, client, metadata):
    source = write(tmp_path / "saved.ipynb", "print(6 * 7)", "%%bash\necho 42", **metadata)
    if not metadata:    # made by hand: its cells have no ids either
        source.write_text(re.sub(r'"id": "[^"]*",', "", source.read_text()))
    done = run(with_token, "saved", client, tmp_path / "out", source)
    assert (done.returncode, done.stderr) == (0, "")
    assert printed(tmp_path / "out/saved.ipynb") == ["42\n", "42\n"]


@pytest.mark.parametrize("holdcell, said", [
    ({"data": "my.csv"}, 'metadata.holdcell.data must be a list of file names, ["file.csv"], and is "my.csv"'),
    ({"data": {"my.csv": 1}}, 'metadata.holdcell.data must be a list of file names, ["file.csv"], and is {"my.csv": 1}'),
    ({"data": None}, 'metadata.holdcell.data must be a list of file names, ["file.csv"], and is null'),
    ({"data": ["here.csv", 7]}, "metadata.holdcell.data[1] must be the name of a file, and is 7"),
    ({"data": [["here.csv"]]}, 'metadata.holdcell.data[0] must be the name of a file, and is ["here.csv"]'),
    ({"data": [""]}, 'metadata.holdcell.data[0] must be the name of a file, and is ""'),
    ({"data": ["a\0b"]}, 'metadata.holdcell.data[0] must be the name of a file, and is "a\\u0000b"'),
    ({"data": ["/etc/passwd"]}, 'metadata.holdcell.data[0] is "/etc/passwd": data files lie directly in the folder data/'),
    ({"data": [".."]}, 'metadata.holdcell.data[0] is "..": data files lie directly in the folder data/'),
    ({"data": ["sub/here.csv"]}, 'metadata.holdcell.data[0] is "sub/here.csv": data files lie directly in the folder data/'),
    ({"data": ["here.csv", "gone.csv"]}, "{data}/gone.csv is missing: the notebook needs it (metadata.holdcell.data[1])"),
    ({"data": ["folder"]}, "{data}/folder is missing: the notebook needs it (metadata.holdcell.data[0])"),
    ({"data": ["n" * 256]}, "metadata.holdcell.data[0] cannot be read: [Errno 36] File name too long: '{data}/" + "n" * 256 + "'"),
    (["here.csv"], 'metadata.holdcell must be an object, {{"data": ["file.csv"]}}, and is ["here.csv"]'),
    ("here.csv", 'metadata.holdcell must be an object, {{"data": ["file.csv"]}}, and is "here.csv"'),
    (None, 'metadata.holdcell must be an object, {{"data": ["file.csv"]}}, and is null'),
], ids=lambda v: json.dumps(v)[:40] if not isinstance(v, str) else "")
def test_a_wrong_list_of_data_files_is_told_by_its_field(tmp_path, capsys, holdcell, said):
    (tmp_path / "data/folder").mkdir(parents=True)
    (tmp_path / "data/here.csv").write_text("n\n1\n")
    source = write(tmp_path / "wrong.ipynb", "print(1)", holdcell=holdcell)
    with pytest.raises(SystemExit) as ended:
        run_notebook.main([str(source), "--url", "http://127.0.0.1:9", "--out", str(tmp_path / "out")])
    said = said.replace("{data}", str(tmp_path / "data")).replace("{{", "{").replace("}}", "}")
    assert ended.value.code == f"Error: {source}: {said}"


@pytest.mark.parametrize("text", ["", "[]", "{}", "7", "{\"nbformat\": 4}", "\xff", '{"nbformat": 4, "nbformat_minor": 5, "metadata": [], "cells": []}',
                                  '{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [1]}'])
def test_a_file_that_is_no_notebook_is_refused_in_one_line(tmp_path, text):
    path = tmp_path / "no.ipynb"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(SystemExit) as ended:
        run_notebook.main([str(path), "--url", "http://127.0.0.1:9"])
    assert ended.value.code.startswith(f"Error: {path} cannot be read: ") and "\n" not in ended.value.code


def test_only_pictures_of_an_earlier_run_are_removed(tmp_path):
    others = ["map[1]-map.png", "map[1]-b-1.png", "map[1]-1.png.png", "map1-1.png", "of-map[1]-1.png"]
    for name in ["map[1]-1.png", "map[1]-12.png", *others]:
        (tmp_path / name).write_bytes(b"kept")
    run_notebook.write_results(nbformat.v4.new_notebook(), tmp_path, "map[1]")
    assert sorted(p.name for p in tmp_path.glob("*.png")) == sorted(others)


def test_a_summary_is_of_code_cells_whatever_else_has_its_tag():
    tagged, said = {"tags": ["summary"]}, nbformat.v4.new_output("stream", name="stdout", text="a\nb\n")
    cells = [nbformat.v4.new_markdown_cell("# Sum", metadata=tagged), nbformat.v4.new_raw_cell("raw", metadata=tagged),
             nbformat.v4.new_code_cell("print()", metadata=tagged, outputs=[said])]
    assert run_notebook.summary(nbformat.v4.new_notebook(cells=cells)) == ["a", "b"]


def test_no_output_that_passes_stops_the_writing_of_the_notebook(tmp_path):
    def display(value):
        return {"output_type": "display_data", "data": {"application/json": value}, "metadata": {}}

    nests = [functools.reduce(lambda inner, _: [inner], range(depth), "x") for depth in (0, 98, 99, 300, 480, 499, 2000)]
    objects = [functools.reduce(lambda inner, _: {"a": inner}, range(depth), "x") for depth in (98, 99, 499)]
    outputs = [display(value) for value in [*nests, *objects, "\ud800", {"\udc00": 1}]]
    cell = nbformat.v4.new_code_cell("")
    assert "no notebook can hold" in str(run_notebook.keep(cell, outputs))
    assert [run_notebook.fault_of(output) is None for output in outputs] == [True, True] + [False] * 5 + [True] + [False] * 4
    run_notebook.write_results(nbformat.v4.new_notebook(cells=[cell]), tmp_path, "all")
    assert len(nbformat.read(tmp_path / "all.ipynb", as_version=4).cells[0].outputs) == 3


def test_a_notebook_that_cannot_be_written_leaves_the_one_before(tmp_path):
    path = write(tmp_path / "before.ipynb", "1")
    before = path.read_bytes()
    with pytest.raises(UnicodeEncodeError):
        run_notebook.write_notebook(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("\ud800")]), path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_a_notebook_that_could_not_be_written_again_is_not_run(tmp_path):
    path = tmp_path / "half.ipynb"
    path.write_text(json.dumps(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("'\ud800'")])))
    with pytest.raises(SystemExit, match="half.ipynb cannot be read: it is no notebook .*surrogates not allowed"):
        run_notebook.read_notebook(path)
