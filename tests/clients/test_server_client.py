"""jupyter_server_client, by which jupyter-mcp-server asks a server: all that it offers for kernels, kernelspecs and sessions, and
what it says where this server has nothing. Its models are pydantic's; here they are also read strictly, without conversions."""

import datetime
import json
import os

import pytest
from jupyter_server_client import (APIStatus, AuthenticationError, BadRequestError, Identity, JupyterServerClient, KernelSpecs,
                                   NotFoundError, ServerInfo, Session)
from jupyter_server_client.models import Kernel
from pydantic import TypeAdapter, ValidationError
from server import DEADLINE, Server, wait_for

STATES = {"starting", "idle", "busy"}


def connect(server, token):
    return JupyterServerClient(f"http://127.0.0.1:{server.port}", token=token, timeout=DEADLINE)


def leave_nothing(server):
    for kernel in server.request("GET", "/api/kernels").json():
        server.wait_state(kernel["id"], "idle")      # one that starts takes half of the drain timeout to end
        server.delete_kernel(kernel["id"])


@pytest.fixture
def client(server):
    with connect(server, server.token) as made:
        yield made
    leave_nothing(server)


@pytest.fixture(scope="module")
def profiled(tmp_path_factory):
    """Started with --profiles: each kernel's model has one key more."""
    path = tmp_path_factory.mktemp("profiles") / "profiles.json"
    path.write_text(json.dumps({"profiles": {"small": {"limits": {"memory_mb": 512}}}}))
    path.chmod(0o644)
    started = Server("--profiles", str(path)).start()
    yield started
    started.close()


@pytest.fixture
def profiled_client(profiled):
    with connect(profiled, profiled.token) as made:
        yield made
    leave_nothing(profiled)


def make_kernel(client, **model):
    """Its manager of kernels only lists: who makes some is jupyter_kernel_client."""
    return Kernel(**client.http_client.post("/api/kernels", json_data={"name": "python3", **model}))


def wait_idle(client, kid):
    def idle():
        """the kernel is idle"""
        return client.kernels.get_kernel(kid).execution_state == "idle"
    wait_for(idle)


def strictly(model, server, path):
    """The answer as pydantic reads it when it may convert nothing (but a time, for which JSON has no type)."""
    answer = server.request("GET", path)
    assert answer.status == 200, answer
    return TypeAdapter(model).validate_json(answer.body, strict=True)


# --- the server ------------------------------------------------------------------------------

def test_version_status_and_identity(client, server):
    assert client.get_version().version == server.request("GET", "/api").json()["version"]
    assert "/api/kernels/{id}/channels" in client.get_api_spec()
    before = client.get_status()
    assert (before.kernels, before.connections) == (0, 0)
    assert before.started.utcoffset() == datetime.timedelta(0) and before.started <= before.last_activity
    make_kernel(client)
    now = client.get_status()
    assert now.kernels == 1 and now.started == before.started and now.last_activity >= before.last_activity
    me = client.get_identity()
    assert (me.username, me.name, me.display_name, me.initials) == ("anonymous", "Anonymous", "Anonymous", "An")
    assert client.get_identity(permissions={"kernels": ["read", "write"]}) == me
    with pytest.raises(BadRequestError, match="permissions"):
        client.get_identity(permissions=["kernels"])


@pytest.mark.parametrize("token", ["wrong", ""])
def test_without_the_token_it_says_so(server, token):
    with connect(server, token) as client:
        for ask in (client.get_version, client.get_status, client.kernels.list_kernels, client.sessions.list_sessions):
            with pytest.raises(AuthenticationError) as told:
                ask()
            assert told.value.status_code == 401 and "token" in told.value.message


def test_kernelspecs(client):
    specs = client.kernelspecs.list_kernelspecs()
    assert specs.default == client.kernelspecs.get_default_kernelspec_name() == "python3"
    one = client.kernelspecs.get_kernelspec("python3")
    assert one == specs.kernelspecs["python3"] and one.name == "python3"
    assert one.spec.language == "python" and one.spec.interrupt_mode == "signal" and one.spec.argv and one.spec.display_name
    assert one.resources["logo-svg"] == "/kernelspecs/python3/logo-svg.svg"
    assert client.kernelspecs.get_kernelspec("nothing") is None


# --- kernels, sessions -------------------------------------------------------------------------

def test_a_kernel_is_made_listed_interrupted_restarted_and_ended(client):
    http = client.http_client
    made = make_kernel(client)
    assert [k.id for k in client.kernels.list_kernels()] == [made.id]
    got = client.kernels.get_kernel(made.id)
    assert (got.id, got.name, got.connections) == (made.id, "python3", 0) and got.execution_state in STATES
    assert got.last_activity.utcoffset() == datetime.timedelta(0)
    wait_idle(client, made.id)
    assert http.post(f"/api/kernels/{made.id}/interrupt") is None
    again = Kernel(**http.post(f"/api/kernels/{made.id}/restart"))
    assert again.id == made.id and again.execution_state in STATES and again.last_activity >= made.last_activity
    wait_idle(client, made.id)
    assert http.delete(f"/api/kernels/{made.id}") is None
    assert client.kernels.list_kernels() == []
    with pytest.raises(NotFoundError, match=f"404: Kernel does not exist: {made.id}"):
        client.kernels.get_kernel(made.id)


def test_a_session_is_made_found_renamed_given_another_kernel_and_ended(client):
    sessions = client.sessions
    made = sessions.create_session("a.ipynb", kernel={"name": "python3"}, name="a")
    assert (made.path, made.name, made.type, made.kernel.name) == ("a.ipynb", "a", "notebook", "python3")
    assert sessions.create_session("a.ipynb", kernel={"name": "python3"}).id == made.id, "the path has one"
    assert [s.id for s in sessions.list_sessions()] == [made.id]
    assert [k.id for k in client.kernels.list_kernels()] == [made.kernel.id]
    moved = sessions.rename_session(made.id, "b.ipynb")
    assert (moved.id, moved.path, moved.name, moved.kernel.id) == (made.id, "b.ipynb", "a", made.kernel.id)
    changed = sessions.update_session(made.id, name="b", session_type="console")
    assert (changed.path, changed.name, changed.type) == ("b.ipynb", "b", "console")
    wait_idle(client, made.kernel.id)
    other = sessions.update_session(made.id, kernel={"name": "python3"})
    assert other.id == made.id and other.kernel.id != made.kernel.id
    assert [k.id for k in client.kernels.list_kernels()] == [other.kernel.id]
    assert sessions.get_session(made.id).kernel.id == other.kernel.id
    wait_idle(client, other.kernel.id)
    sessions.delete_session(made.id)
    assert sessions.list_sessions() == [] and client.kernels.list_kernels() == []
    with pytest.raises(NotFoundError, match="Session not found"):
        sessions.get_session(made.id)
    with pytest.raises(NotFoundError, match="Session not found"):
        sessions.delete_session(made.id)


# --- what is not here --------------------------------------------------------------------------

@pytest.mark.parametrize("ask", [
    lambda c: c.contents.list_directory(),
    lambda c: c.contents.get("a.ipynb"),
    lambda c: c.contents.create_notebook("a.ipynb"),
    lambda c: c.contents.rename("a.ipynb", "b.ipynb"),
    lambda c: c.contents.delete("a.ipynb"),
    lambda c: c.contents.list_checkpoints("a.ipynb"),
    lambda c: c.terminals.list_terminals(),
    lambda c: c.terminals.create_terminal(),
    lambda c: c.terminals.delete_terminal("1"),
], ids=["list", "get", "create", "rename", "delete", "checkpoints", "terminals", "create-terminal", "delete-terminal"])
def test_contents_and_terminals_are_not_found_and_nothing_is_tried_again(client, ask):
    asked = []
    client.http_client.session.hooks["response"].append(lambda answer, **_: asked.append(answer))
    with pytest.raises(NotFoundError) as told:
        ask(client)
    assert str(told.value) == "404: Not Found" and len(asked) == 1
    assert asked[0].headers["Content-Type"] == "application/json" and not asked[0].raw.retries.history


# --- models ------------------------------------------------------------------------------------

def test_strict_models_take_every_answer(client, server):
    session = client.sessions.create_session("strict.ipynb", kernel={"name": "python3"})     # without a name
    kid = session.kernel.id
    for model, path in ((ServerInfo, "/api"), (APIStatus, "/api/status"), (KernelSpecs, "/api/kernelspecs"),
                        (list[Kernel], "/api/kernels"), (Kernel, f"/api/kernels/{kid}"),
                        (list[Session], "/api/sessions"), (Session, f"/api/sessions/{session.id}"),
                        (dict[str, Identity | dict], "/api/me")):
        assert strictly(model, server, path), path
    assert strictly(Session, server, f"/api/sessions/{session.id}").name == ""


@pytest.mark.parametrize("profile", ["small", pytest.param("default", marks=pytest.mark.full)])
def test_a_server_with_profiles_adds_a_key_that_the_models_take(profiled_client, profiled, profile):
    made = make_kernel(profiled_client, **({} if profile == "default" else {"profile": profile}))
    assert made.profile == profile
    assert profiled_client.kernels.get_kernel(made.id).profile == profile
    assert [k.profile for k in profiled_client.kernels.list_kernels()] == [profile]
    session = profiled_client.sessions.create_session("a.ipynb", kernel={"id": made.id})
    assert session.kernel.id == made.id and session.kernel.profile == profile
    assert strictly(Kernel, profiled, f"/api/kernels/{made.id}").profile == profile
    assert strictly(list[Session], profiled, "/api/sessions")[0].kernel.profile == profile
    wait_idle(profiled_client, made.id)
    profiled_client.sessions.delete_session(session.id)


def test_a_model_that_forbids_other_keys_is_for_a_server_without_profiles(client, profiled_client):
    class Closed(Kernel, extra="forbid"):
        pass

    plain, with_profile = (make_kernel(c).model_dump() for c in (client, profiled_client))
    assert Closed(**plain).model_dump() == plain
    with pytest.raises(ValidationError) as told:
        Closed(**with_profile)
    assert [(e["type"], e["loc"]) for e in told.value.errors()] == [("extra_forbidden", ("profile",))]


@pytest.mark.skipif("HCONF_NODE_MODULES" not in os.environ, reason="no packages of tests/node (HCONF_NODE_MODULES)")
@pytest.mark.usefixtures("profiled_client")
@pytest.mark.parametrize("scenario", ["kernel", pytest.param("sessions", marks=pytest.mark.full)])
def test_jupyterlabs_services_take_it_too(node, profiled, scenario):
    got = node(profiled, scenario, False).result()
    if scenario == "kernel":
        assert got["one"]["result"] == "42" and got["listed"] and got["statusAfter"] == "dead"
    else:
        assert got["one"]["result"] == "7" and got["two"]["result"] == "8" and "n2.ipynb" in got["paths"]
