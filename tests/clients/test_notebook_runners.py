"""nbclient, papermill and nbconvert through jupyter_server's GatewayKernelManager, on the example notebooks and on
notebooks made for what goes wrong most: errors, display ids, clear_output, widgets."""

import base64
import json
import pathlib

import nbformat
import pytest
from server import ROOT

NOTEBOOKS = sorted(pathlib.Path(ROOT, "notebooks").glob("*.ipynb"))
DATA = pathlib.Path(ROOT, "notebooks/data")

# Files stay with the client, so a first cell brings them into the session.
UPLOAD = "import base64, pathlib\npathlib.Path('data').mkdir()\n" + "".join(
    f"pathlib.Path('data/{p.name}').write_bytes(base64.b64decode({base64.b64encode(p.read_bytes())!r}))\n"
    for p in sorted(DATA.glob("*.csv")))

# Runs a notebook given as NOTEBOOK, writes executed.ipynb; ENGINE says by what, TOKEN may be empty.
RUNNER = '''
import functools, json, os, sys
import nbformat, websocket
from jupyter_server.gateway.gateway_client import GatewayClient
from jupyter_server.gateway.managers import GatewayKernelManager

GatewayClient.instance().url = os.environ["URL"]
if token := os.environ["TOKEN"]:
    GatewayClient.instance().auth_token = token
    websocket.create_connection = functools.partial(
        websocket.create_connection, header=[f"Authorization: token {token}"])
failure = None
if os.environ["ENGINE"] == "nbclient":
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError
    notebook = nbformat.read("notebook.ipynb", as_version=4)
    try:
        NotebookClient(notebook, kernel_manager_class=GatewayKernelManager, timeout=300, store_widget_state=True).execute()
    except CellExecutionError as error:
        failure = error.ename
    nbformat.write(notebook, "executed.ipynb")
else:
    import papermill
    from papermill.clientwrap import PapermillNotebookClient
    from papermill.engines import NBClientEngine, papermill_engines
    from papermill.exceptions import PapermillExecutionError

    class Engine(NBClientEngine):
        @classmethod
        def execute_managed_notebook(cls, nb_man, kernel_name, **options):
            PapermillNotebookClient(nb_man, kernel_manager_class=GatewayKernelManager, timeout=300).execute()

    papermill_engines.register("gateway", Engine)
    try:
        papermill.execute_notebook("notebook.ipynb", "executed.ipynb", parameters=json.loads(os.environ["PARAMETERS"]),
                                   engine_name="gateway", kernel_name="python3", progress_bar=False)
    except PapermillExecutionError as error:
        failure = error.ename
print(json.dumps(failure))
'''


@pytest.fixture(params=["token", "no-token"])
def either(request):
    """A server with a token, and one without, where the clients are as they come."""
    return request.getfixturevalue("server" if request.param == "token" else "open_server")


@pytest.fixture(params=["nbclient", "papermill"])
def execute(request, program, tmp_path):
    def execute(server, notebook, **parameters):
        nbformat.write(notebook, tmp_path / "notebook.ipynb")
        done = program("python3", "-c", RUNNER, URL=f"http://127.0.0.1:{server.port}", TOKEN=server.token,
                       ENGINE=request.param, PARAMETERS=json.dumps(parameters))
        executed = nbformat.read(tmp_path / "executed.ipynb", as_version=4)
        nbformat.validate(executed)
        assert server.request("GET", "/api/kernels").json() == [], "a session is left"
        return json.loads(done.stdout.splitlines()[-1]), executed
    return execute


def notebook_of(*cells):
    kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells], metadata={"kernelspec": kernelspec})


def found(notebook, kind):
    return [o for c in notebook.cells for o in c.get("outputs", []) if o.output_type == kind]


def own(notebook, source):
    """The outputs of the cell with this source."""
    return next(c.outputs for c in notebook.cells if c.source == source)


@pytest.mark.full          # tests/notebooks runs them by nbclient in the quick tier
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_an_example_runs_with_a_token_and_without(either, execute, path):
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(UPLOAD))
    failure, executed = execute(either, notebook)
    assert failure is None and found(executed, "error") == []
    assert sum("image/png" in o.data for o in found(executed, "display_data")) >= 2


def test_without_a_token_too(open_server, execute):
    failure, executed = execute(open_server, notebook_of("print(6 * 7)"))
    assert failure is None and found(executed, "stream")[0].text == "42\n"


def test_an_error_ends_the_run_and_is_kept(server, execute):
    failure, executed = execute(server, notebook_of("print('before')\n1 / 0", "print('never')"))
    assert failure == "ZeroDivisionError"
    assert [o.ename for o in found(executed, "error")] == ["ZeroDivisionError"]
    assert "never" not in "".join(o.text for o in found(executed, "stream"))


def test_updates_reach_earlier_outputs(server, execute):
    show = "h = display('one', display_id='bar')"
    _, executed = execute(server, notebook_of(show, "h.update('two')", "print('end')"))
    assert [o.data["text/plain"] for o in own(executed, show)] == ["'two'"]


@pytest.mark.full
def test_what_was_cleared_is_gone(server, execute):
    code = "from IPython.display import clear_output\nfor i in range(20):\n    clear_output(wait=True)\n    print('turn', i)"
    _, executed = execute(server, notebook_of(code))
    assert [o.text for o in own(executed, code)] == ["turn 19\n"]


def test_a_widget_is_shown_by_its_model(server, execute):
    code = "import ipywidgets\ns = ipywidgets.IntSlider(value=7)\ns"
    failure, executed = execute(server, notebook_of(code, "s.value = 8", "print(s.value)"))
    assert failure is None
    view = own(executed, code)[0].data["application/vnd.jupyter.widget-view+json"]
    states = executed.metadata.get("widgets", {}).get("application/vnd.jupyter.widget-state+json", {}).get("state", {})
    if states:          # papermill does not keep them
        assert states[view["model_id"]]["state"]["value"] == 8


@pytest.mark.full
def test_captured_output_of_a_widget(server, execute):
    code = "import ipywidgets\nout = ipywidgets.Output()\nwith out:\n    print('inside')\nout"
    failure, executed = execute(server, notebook_of(code))
    assert failure is None and "widget-view" in json.dumps(own(executed, code))


def test_five_thousand_lines(server, execute):
    code = "for i in range(5000): print('line', i)"
    _, executed = execute(server, notebook_of(code))
    assert "".join(o.text for o in own(executed, code)) == "".join(f"line {i}\n" for i in range(5000))


@pytest.mark.both
def test_parameters_of_papermill(server, execute, request):
    if request.node.callspec.params["execute"] != "papermill":
        pytest.skip("nbclient has none")
    notebook = notebook_of("n = 1", "print(6 * n)")
    notebook.cells[0].metadata["tags"] = ["parameters"]
    _, executed = execute(server, notebook, n=7)
    assert found(executed, "stream")[0].text == "42\n"


@pytest.mark.full
def test_nbconvert_executes(open_server, program, tmp_path, no_kernels_left):
    nbformat.write(notebook_of("print(6 * 7)"), tmp_path / "notebook.ipynb")
    program("jupyter-nbconvert", "--to", "notebook", "--execute", "--output", "executed",
            "--ExecutePreprocessor.kernel_manager_class=jupyter_server.gateway.managers.GatewayKernelManager", "notebook.ipynb",
            JUPYTER_GATEWAY_URL=f"http://127.0.0.1:{open_server.port}")
    executed = nbformat.read(tmp_path / "executed.ipynb", as_version=4)
    assert found(executed, "stream")[0].text == "42\n"
