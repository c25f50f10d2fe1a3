"""What VS Code's Jupyter extension asks of an existing server, in its order: probes without a token first."""

import json
import uuid

import pytest
import websocket
from server import DEADLINE

V1 = "v1.kernel.websocket.jupyter.org"


@pytest.mark.parametrize("path", ["/tree", "/login", "/hub/api", "/lab", "/", "/api/contents", "/api/terminals"])
def test_a_probe_without_a_token_is_a_404_in_json(server, path):
    """A page or a redirect would look like a login form, a `version` at /hub/api like a JupyterHub."""
    got = server.request("GET", path, token=False)
    assert got.status == 404 and got.headers["Content-Type"].startswith("application/json")
    assert set(got.json()) >= {"reason", "message"} and "version" not in got.json()
    assert "Location" not in got.headers and "Set-Cookie" not in got.headers


def test_the_api_wants_the_token(server):
    assert server.request("GET", "/api/kernels", token=False).status == 401
    assert server.request("GET", f"/api/kernels?token={server.token}", token=False).status == 200
    assert server.request("GET", f"/api/kernels?token={server.token}&1732000000000", token=False).status == 200


def test_the_whole_way_of_a_notebook(server):
    specs = server.request("GET", "/api/kernelspecs?1732000000000").json()
    assert all({"name", "spec", "resources"} <= set(s) for s in specs["kernelspecs"].values())
    assert server.request("GET", "/api/sessions").json() == [] and server.request("GET", "/api/kernels").json() == []
    name = f"vscode-{uuid.uuid4()}.ipynb"
    made = server.request("POST", "/api/sessions", {"path": name, "name": name, "type": "notebook",
                                                     "kernel": {"name": specs["default"], "id": None}})
    assert made.status == 201
    session = made.json()
    assert all(isinstance(session[k], str) for k in ("id", "path", "name", "type"))
    kid, sid = session["kernel"]["id"], uuid.uuid4().hex
    socket = websocket.create_connection(
        f"ws://127.0.0.1:{server.port}/api/kernels/{kid}/channels?session_id={sid}&token={server.token}",
        subprotocols=[V1], timeout=DEADLINE)
    assert socket.getsubprotocol() == V1
    result = execute(socket, sid, "6 * 7")
    assert result["data"]["text/plain"] == "42"
    socket.close()
    assert server.request("GET", f"/api/sessions/{session['id']}").json()["kernel"]["connections"] in (0, 1)
    assert server.request("PATCH", f"/api/sessions/{session['id']}", {"path": "renamed.ipynb"}).json()["path"] == "renamed.ipynb"
    assert server.request("DELETE", f"/api/sessions/{session['id']}").status == 204
    assert server.request("GET", f"/api/kernels/{kid}").status == 404
    assert server.request("DELETE", f"/api/sessions/{session['id']}").status == 404


def test_a_kernel_of_its_own_and_its_end(server):
    kid = server.request("POST", "/api/kernels", {"name": "python3", "path": None}).json()["id"]
    assert server.interrupt(kid) == 204
    assert server.restart(kid).status == 200
    assert server.delete_kernel(kid) == 204 and server.kernel(kid) is None


def execute(socket, sid, code):
    """One execute_request in the v1 framing; returns the content of its execute_result once idle is there."""
    msg_id = uuid.uuid4().hex
    header = {"msg_id": msg_id, "msg_type": "execute_request", "session": sid, "username": "", "version": "5.2",
              "date": "2026-01-01T00:00:00.000Z"}
    content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": True,
               "stop_on_error": True}
    socket.send_binary(pack("shell", header, {}, {}, content))
    result = idle = reply = None
    while not (idle and reply):
        channel, head, parent, _, body = unpack(socket.recv())
        if parent.get("msg_id") != msg_id:
            continue
        if head["msg_type"] == "execute_result":
            result = body
        idle = idle or (head["msg_type"] == "status" and body["execution_state"] == "idle")
        reply = reply or (channel == "shell" and body["status"])
    assert reply == "ok"
    return result


def pack(channel, *parts):
    parts = [channel.encode()] + [json.dumps(p).encode() for p in parts]
    offsets = [8 * (len(parts) + 2)]
    for part in parts:
        offsets.append(offsets[-1] + len(part))
    return b"".join(n.to_bytes(8, "little") for n in [len(offsets), *offsets]) + b"".join(parts)


def unpack(frame):
    count = int.from_bytes(frame[:8], "little")
    offsets = [int.from_bytes(frame[8 * i:8 * i + 8], "little") for i in range(1, count + 1)]
    parts = [frame[a:b] for a, b in zip(offsets, offsets[1:])]
    return (parts[0].decode(), *map(json.loads, parts[1:5]))
