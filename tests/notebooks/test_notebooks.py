"""The example notebooks through the real server, with unmodified client libraries."""

import base64
import json
import pathlib
import subprocess
import sys

import nbformat
import pytest

import look_at_executed
from server import Server

ROOT = pathlib.Path(__file__).resolve().parents[2]
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


def run(server, name, client, out, notebook=None):
    words = [sys.executable, ROOT / "notebooks/run_notebook.py", notebook or ROOT / f"notebooks/{name}.ipynb", "--url",
             f"http://127.0.0.1:{server.port}", "--out", out, "--client", client]
    if server.token:
        words += ["--token", server.token]
    return subprocess.run(words, capture_output=True, text=True, timeout=600)


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
    assert done.returncode == 0, done.stdout + done.stderr + server.log()[-2000:]
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
    assert "ZeroDivisionError" in done.stderr
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
