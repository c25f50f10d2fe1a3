"""The REST surface where clients are particular: conditional requests, sessions, working directories, bodies."""

import json
import re
import threading
import uuid

import pytest

from channels import Channels
from rawhttp import Raw, request
from server import wait_for
from tiers import full_after

GHOST = "00000000-0000-4000-8000-000000000000"
LOGO = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4
STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


@pytest.fixture(scope="module")
def specs(tmp_path_factory):
    """A data directory with the kernelspecs logo and hidden."""
    import os
    import shutil
    import tempfile
    top = tempfile.mkdtemp(prefix="holdcell-specs-")
    os.chmod(top, 0o755)
    for name in ("logo", "hidden"):
        d = os.path.join(top, "kernels", name)
        os.makedirs(d)
        with open(os.path.join(d, "kernel.json"), "w", encoding="ascii") as f:
            json.dump({"argv": ["sleep", "1000"], "display_name": name, "language": "none"}, f)
        with open(os.path.join(d, "logo-64x64.png"), "wb") as f:
            f.write(LOGO)
        with open(os.path.join(d, "notes.txt"), "wb") as f:
            f.write(b"")
    yield top
    shutil.rmtree(top)


@pytest.fixture(scope="module")
def own(specs):
    """A server of this module's own; one kernelspec is not allowed."""
    from server import Server
    s = Server("--kernel-path", specs, "--allowed-kernels", "logo,python3").start()
    yield s
    s.close()


@pytest.fixture
def session(shared):
    """Factory: make(path, **model) -> model of a new notebook session; deleted after the test."""
    made = []

    def make(path, **model):
        r = shared.request("POST", "/api/sessions", {"path": path, "type": "notebook", **model})
        assert r.status == 201, r
        made.append(r.json()["id"])
        return r.json()
    yield make
    for sid in made:
        shared.request("DELETE", f"/api/sessions/{sid}")


def run(server, kid, code):
    with Channels(server, kid) as c:
        got = c.run(code)
        assert got.status == "ok", got
        return got.result


# --- resources of kernelspecs ---------------------------------------------------

def test_a_logo_comes_whole_in_part_or_not_at_all(own):
    url = own.request("GET", "/api/kernelspecs/logo").json()["resources"]["logo-64x64"]
    r = own.request("GET", url)
    assert r.status == 200 and r.body == LOGO and r.headers["Content-Type"] == "image/png"
    assert r.headers["Cache-Control"] == "private, max-age=2592000" and r.headers["Accept-Ranges"] == "bytes"
    etag = r.headers["ETag"]
    for field, first, end in (("bytes=0-0", 0, 1), ("bytes=10-19", 10, 20), ("bytes=1000-", 1000, len(LOGO)),
                              ("bytes=-7", len(LOGO) - 7, len(LOGO)), ("bytes=5-99999999", 5, len(LOGO)),
                              ("bytes=-99999999", 0, len(LOGO))):
        r = own.request("GET", url, headers={"Range": field})
        assert r.status == 206 and r.body == LOGO[first:end], field
        assert r.headers["Content-Range"] == f"bytes {first}-{end - 1}/{len(LOGO)}" and r.headers["ETag"] == etag
    for field in ("bytes=99999999-", "bytes=-0"):
        r = own.request("GET", url, headers={"Range": field})
        assert r.status == 416 and r.headers["Content-Range"] == f"bytes */{len(LOGO)}" and r.json()["message"], field
    for field in ("bytes=0-1,4-5", "bytes=", "bytes=-", "bytes=5-2", "bytes=x-2", "items=0-1", "0-1",
                  "bytes=0-99999999999999999999999", "bytes=--1"):
        r = own.request("GET", url, headers={"Range": field})
        assert r.status == 200 and r.body == LOGO, field
    assert own.request("GET", url, headers={"Range": "bytes=0-1", "If-Range": etag}).status == 206
    assert own.request("GET", url, headers={"Range": "bytes=0-1", "If-Range": '"old"'}).status == 200
    for field in (etag, f"W/{etag}", f'"x", {etag}', "*"):
        r = own.request("GET", url, headers={"If-None-Match": field})
        assert r.status == 304 and r.body == b"" and r.headers["ETag"] == etag, field
    assert own.request("GET", url, headers={"If-None-Match": etag.strip('"')}).status == 200


def test_head_of_a_resource_tells_what_get_would(own):
    for path, status in (("/kernelspecs/logo/logo-64x64.png", 200), ("/kernelspecs/logo/notes.txt", 200),
                         ("/kernelspecs/logo/none", 404), ("/kernelspecs/hidden/logo-64x64.png", 404)):
        get, head = own.request("GET", path), own.request("HEAD", path)
        assert (get.status, head.status, head.body) == (status, status, b""), path
        for name in ("Content-Length", "Content-Type", "ETag", "Cache-Control"):
            assert get.headers[name] == head.headers[name], (path, name)
    r = own.request("GET", "/kernelspecs/logo/notes.txt", headers={"Range": "bytes=0-"})
    assert r.status == 416 and r.headers["Content-Range"] == "bytes */0"
    with Raw(own) as c:             # the connection goes on
        c.send(request(own, "HEAD", "/kernelspecs/logo/logo-64x64.png") + request(own, "GET", "/api"))
        assert c.answer("HEAD")[0] == 200
        assert "version" in json.loads(c.answer()[2])


def test_a_hidden_kernelspec_is_unknown_everywhere(own):
    unknown = own.request("GET", "/api/kernelspecs/none").json()["message"]
    assert "hidden" not in own.request("GET", "/api/kernelspecs").body.decode()
    for path in ("/api/kernelspecs/hidden", "/api/kernelspecs/HIDDEN", "/api/kernelspecs?user=bob/hidden"):
        r = own.request("GET", path)
        assert r.status == 404 and r.json()["message"].lower() == unknown.replace("none", "hidden").lower(), r
    assert own.request("GET", "/kernelspecs/hidden/kernel.json").status == 404
    told, unknown = (own.request("POST", "/api/kernels", {"name": n}) for n in ("hidden", "none"))
    assert told.status == unknown.status == 500
    assert told.body.replace(b"hidden", b"none") == unknown.body
    model = {"path": "h.ipynb", "type": "notebook"}
    told, unknown = (own.request("POST", "/api/sessions", {**model, "kernel": {"name": n}}) for n in ("hidden", "none"))
    assert told.status == unknown.status == 501
    assert told.body.replace(b"hidden", b"none") == unknown.body
    assert own.request("GET", "/api/kernels").json() == [] == own.request("GET", "/api/sessions").json()


# --- about the server -----------------------------------------------------------

def test_an_entity_tag_follows_the_content(shared, kernel):
    first = shared.request("GET", "/api/kernels").headers["ETag"]
    kid = kernel("python3")
    r = shared.request("GET", "/api/kernels", headers={"If-None-Match": first})
    assert r.status == 200 and kid in [k["id"] for k in r.json()]
    assert r.headers["ETag"] != first and re.fullmatch('"[0-9a-f]{32}"', first)
    for answer in (shared.request("POST", "/api/kernels", {"kernel_id": kid}), shared.request("GET", f"/api/kernels/{GHOST}")):
        assert answer.headers["ETag"] is None


def test_status_counts_kernels_and_sockets(server_with):
    s = server_with()

    def status():
        r = s.request("GET", "/api/status").json()
        assert set(r) == {"connections", "kernels", "last_activity", "started"}
        assert STAMP.fullmatch(r["started"]) and STAMP.fullmatch(r["last_activity"])
        return r
    first = status()
    assert (first["connections"], first["kernels"]) == (0, 0) and first["last_activity"] == first["started"]
    a, b = s.start_kernel("python3"), s.start_kernel("python3")
    with Channels(s, a) as one, Channels(s, b) as two, Channels(s, b) as three:
        for c in (one, two, three):
            assert c.run("1").status == "ok"
        now = status()
        assert (now["connections"], now["kernels"]) == (3, 2) and now["last_activity"] > first["last_activity"]
        assert now["last_activity"] == max(s.kernel(k)["last_activity"] for k in (a, b))
    wait_for(lambda: status()["connections"] == 0)
    assert s.delete_kernel(a) == s.delete_kernel(b) == 204
    assert status()["kernels"] == 0


@pytest.mark.parametrize("asked,granted", [
    ("", {}), ("{}", {}), ('{"kernels":["read","write","execute"]}', {"kernels": ["read", "write", "execute"]}),
    ('{"contents":[],"x y":["read"]}', {"contents": [], "x y": ["read"]}),
    ("[]", None), ("1", None), ("{", None), ('{"a":"read"}', None), ('{"a":[1]}', None), ('{"a":{"b":1}}', None)])
def test_permissions_are_what_was_asked(shared, asked, granted):
    from urllib.parse import quote
    r = shared.request("GET", f"/api/me?permissions={quote(asked)}&1732000000000")
    if granted is None:
        assert r.status == 400 and "permissions" in r.json()["message"]
        return
    assert r.status == 200
    assert r.json()["permissions"] == {**granted, "updatable_fields": []}
    assert r.json()["identity"]["username"] == "anonymous" and r.json()["identity"]["avatar_url"] is None


def test_the_root_and_foreign_routes_are_json_404s_that_ask_for_nothing(shared):
    for path in ("/", "/tree", "/login", "/logout", "/lab", "/hub/api", "/api/contents", "/api/contents/a.ipynb", "/api/terminals",
                 "/api/terminals/1", "/api/config", "/api/kernelspecs/a/b", "/api/kernels/a-b", "/api/nbconvert", "/nope", "/api/spec"):
        for method in ("GET", "POST", "DELETE", "PUT"):
            r = shared.request(method, path, token=False)
            assert r.status == 404 and set(r.json()) == {"reason", "message"}, (method, path, r)
            assert r.headers["Content-Type"] == "application/json" and r.headers["WWW-Authenticate"] is None


@pytest.mark.parametrize("path,allow", [
    ("/api", "GET"), ("/api/kernels", "GET POST"), (f"/api/kernels/{GHOST}", "GET DELETE"), ("/api/sessions", "GET POST"),
    (f"/api/sessions/{GHOST}", "GET PATCH DELETE"), (f"/api/kernels/{GHOST}/restart", "POST"),
    ("/kernelspecs/python3/kernel.json", "GET HEAD"), ("/api/kernelspecs/", "GET")])
def test_other_methods_get_405_and_allow(shared, path, allow):
    allowed = set(allow.split()) | {"OPTIONS"}
    for method in {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "BREW"} - allowed:
        r = shared.request(method, path)
        assert r.status == 405 and set(r.headers["Allow"].split(", ")) == allowed, (method, path, r)
    r = shared.request("OPTIONS", path, token=False)
    assert r.status == 200 and r.body == b"" and r.headers["Content-Length"] == "0"


def test_under_an_encoded_base_url(server_with, specs):
    s = server_with("--base-url", "/a%40b/", "--kernel-path", specs)
    for base in ("/a%40b", "/a@b", "/%61%40%62"):
        assert "version" in s.request("GET", f"{base}/api").json()
    assert s.request("GET", "/api", token=False).status == 404
    url = s.request("GET", "/a@b/api/kernelspecs/logo").json()["resources"]["logo-64x64"]
    assert url == "/a%40b/kernelspecs/logo/logo-64x64.png" and s.request("GET", url).body == LOGO
    r = s.request("POST", "/a%40b/api/kernels", {"name": "python3"})
    kid = r.json()["id"]
    assert r.headers["Location"] == f"/a%40b/api/kernels/{kid}"
    r = s.request("POST", "/a@b/api/sessions", {"path": "x", "type": "console", "kernel": {"id": kid}})
    assert r.headers["Location"] == f"/a%40b/api/sessions/{r.json()['id']}"
    for path in (f"/api/kernels/{kid}", "/a%2540b/api", "/a%40bc/api"):
        assert s.request("GET", path, token=False).status == 404


# --- bodies -----------------------------------------------------------------------

@pytest.mark.parametrize("body", full_after(2, [
    b"", b'{"name":null,"path":null,"kernel_id":null,"env":null,"limits":null}', b" \r\n\t", b"null", b"{}", b'\r\n {"env": {}} \n']))
def test_a_body_of_nothing_means_the_default_kernel(own, body):
    r = own.request("POST", "/api/kernels", body)
    assert r.status == 201 and r.json()["name"] == "python3", r
    assert own.delete_kernel(r.json()["id"]) == 204


@pytest.mark.parametrize("body,word", [
    (b"{", "JSON"), (b"{} x", "JSON"), (b"[]", "object"), (b'"x"', "object"), (b"1", "object"), (b"\xff", "JSON"),
    (b'{"name": 1}', "name"), (b'{"name": "a\\u0000b"}', "name"), (b'{"path": []}', "path"), (b'{"kernel_id": "x"}', "kernel_id"),
    (b'{"env": []}', "env"), (b'{"env": "x"}', "env"), (b'{"env": {"A": 1}}', "env.A"), (b'{"env": {"A": null}}', "env.A"),
    (b'{"env": {"1A": ""}}', "1A"), (b'{"env": {"A=B": ""}}', "A=B"), (b'{"env": {"": ""}}', "env"), (b'{"env": {"A-B": ""}}', "A-B"),
    (b'{"env": {"A": "a\\u0000b"}}', "env.A"), (b'{"env": {"' + b"A" * 200 + b'": ""}}', "env"),
    (b'{"env": {"KERNEL_A": "' + b"x" * 40000 + b'"}}', "KERNEL_A"),
    (json.dumps({"env": {f"KERNEL_{i}": "x" * 1000 for i in range(200)}}).encode(), "env"),
    (json.dumps({"env": {f"KERNEL_{i}": "" for i in range(2000)}}).encode(), "env"),
    (b"[" * 3000, "JSON")])
def test_a_bad_body_names_its_field(own, body, word):
    r = own.request("POST", "/api/kernels", body)
    assert r.status == 400 and word in r.json()["message"], r
    assert own.request("GET", "/api/kernels").json() == []


def test_the_ways_to_send_a_body(own):
    body = b'{"name": "logo"}'

    def created(c):
        status, headers, body = c.answer()
        assert status == 201, body
        assert own.delete_kernel(json.loads(body)["id"]) == 204
    with Raw(own) as c:                                             # all on one connection
        c.send(request(own, "POST", "/api/kernels", f"Content-Length: {len(body)}\r\nExpect: 100-continue\r\n"))
        status, headers, rest = c.answer()
        assert (status, headers, rest) == (100, {}, b"")
        c.send(body)
        created(c)
        c.send(request(own, "POST", "/api/kernels", "Transfer-Encoding: chunked\r\n"))
        for piece in (b"1\r\n{\r\n", b"f;ext=1\r\n" + body[1:] + b"\r\n", b"0\r\nX-Trailer: 1\r\n\r\n"):
            c.send(piece)
        created(c)
        c.send(request(own, "POST", "/api/kernels", "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n"))
        assert c.answer()[0] == 100
        c.send(b"10\r\n" + body + b"\r\n0\r\n\r\n")
        created(c)
        c.send(request(own, "GET", "/api", "Content-Type: application/json\r\n"))
        assert c.answer()[0] == 200
    with Raw(own) as c:     # a body that would be refused is not asked for
        c.send(request(own, "POST", "/api/kernels", "Content-Length: 99\r\nExpect: 100-continue\r\n", token=False))
        assert c.answer()[0] == 401 and c.ended()
    with Raw(own) as c:
        c.send(request(own, "POST", "/api/kernels", "Content-Length: 99999999\r\nExpect: 100-continue\r\n"))
        assert c.answer()[0] == 413 and c.ended()
    with Raw(own) as c:
        c.send(request(own, "POST", "/api/kernels", "Content-Length: 2\r\nExpect: tea\r\n"))
        assert c.answer()[0] == 417


# --- kernels ------------------------------------------------------------------------

@pytest.mark.full
def test_where_a_kernel_starts(shared, kernel):
    code = "import os; os.getcwd()"
    for model, cwd in (({"path": "../../etc/x"}, "/home/user"), ({"env": {"KERNEL_WORKING_DIR": "/home/user"}}, "/home/user"),
                       ({"env": {"KERNEL_WORKING_DIR": "/etc"}}, "/home/user"),
                       ({"env": {"KERNEL_WORKING_DIR": "/home/user/../../etc"}}, "/home/user")):
        assert run(shared, kernel("python3", **model), code) == repr(cwd), model
    # What is there only at the next start: the nearest directory above it.
    for model, cwd in (({"path": "a/b.d/c/nb.ipynb"}, "a/b.d"), ({"env": {"KERNEL_WORKING_DIR": "/home/user/a/b.d/c"}}, "a/b.d"),
                       ({"path": "a/x.ipynb", "env": {"KERNEL_WORKING_DIR": "/home/user/a/b.d"}}, "a")):
        kid = kernel("python3", **model)
        assert run(shared, kid, "import os; os.makedirs('a/b.d'); os.getcwd()") == "'/home/user'"
        assert shared.restart(kid).status == 200
        assert run(shared, kid, code) == repr("/home/user/" + cwd), model


def test_ids_that_are_asked_for_at_the_same_time_are_one_kernel(shared):
    kid, got = str(uuid.uuid4()), []
    ask = [threading.Thread(target=lambda: got.append(shared.request("POST", "/api/kernels", {"name": "python3", "kernel_id": kid})))
           for _ in range(5)]
    for t in ask:
        t.start()
    for t in ask:
        t.join()
    assert [r.status for r in got] == [201] * 5 and {r.json()["id"] for r in got} == {kid}
    assert [k["id"] for k in shared.request("GET", "/api/kernels").json()].count(kid) == 1
    assert shared.delete_kernel(kid) == 204


# --- sessions -----------------------------------------------------------------------

@pytest.mark.full
def test_a_kernel_knows_its_session(shared, session):
    code = "import os; os.environ.get('JPY_SESSION_NAME')"
    s = session("sub/a.ipynb", name="a.ipynb")
    kid = s["kernel"]["id"]
    assert run(shared, kid, code) == "'/home/user/sub/a.ipynb'"
    r = shared.request("PATCH", f"/api/sessions/{s['id']}", {"path": "sub/b.ipynb", "name": "b.ipynb"})
    assert r.status == 200 and r.json()["kernel"]["id"] == kid
    assert run(shared, kid, code) == "'/home/user/sub/a.ipynb'"       # of a process that runs it cannot be changed
    assert shared.restart(kid).status == 200
    assert run(shared, kid, code) == "'/home/user/sub/b.ipynb'"
    r = shared.request("PATCH", f"/api/sessions/{s['id']}", {"path": "c.ipynb", "name": "c", "kernel": {"name": "python3"}})
    assert run(shared, r.json()["kernel"]["id"], code) == "'/home/user/c'"
    assert run(shared, session("only-a-path")["kernel"]["id"], code) == "'only-a-path'"


def test_a_client_cannot_say_which_session_a_kernel_is_of(shared, kernel):
    kid = kernel("python3", env={"JPY_SESSION_NAME": "x", "KERNEL_A": "1"})
    assert run(shared, kid, "import os; [os.environ.get(n) for n in ('JPY_SESSION_NAME', 'KERNEL_A')]") == "[None, '1']"


def test_changes_of_a_session(shared, session, kernel):
    s = session("change.ipynb", name="n")
    url, first = f"/api/sessions/{s['id']}", s["kernel"]["id"]

    def patch(body):
        return shared.request("PATCH", url, body)
    for body, status, word in ((b"", 400, "No JSON data"), (b"  ", 400, "No JSON data"), (b"null", 400, "No JSON data"),
                               (b"{", 400, "JSON"), ([], 400, "object"), ({"kernel": []}, 400, "kernel"), ({"path": 1}, 400, "path"),
                               ({"kernel": {"id": GHOST}}, 400, GHOST), ({"kernel": {"id": "x"}}, 400, "x")):
        r = patch(body)
        assert r.status == status and word in r.json()["message"], (body, r)
    r = patch({"kernel": {"id": None, "name": "none"}})
    assert r.status == 501 and r.json()["message"] != r.json()["short_message"]
    assert "none" in r.json()["message"] and set(r.json()) == {"reason", "message", "short_message"}
    assert shared.request("GET", url).json() == {**s, "kernel": shared.kernel(first)}    # nothing of it came through
    r = patch({"id": "other", "extra": 1, "name": None, "path": None, "type": "console"})
    assert r.status == 200 and (r.json()["id"], r.json()["path"], r.json()["name"]) == (s["id"], "change.ipynb", "n")
    r = patch({"kernel": {"id": None, "name": "python3"}})
    second = r.json()["kernel"]["id"]
    assert r.status == 200 and second != first and shared.kernel(first) is None and shared.kernel(second)
    own = kernel("python3")
    r = patch({"kernel": {"id": own, "name": "none"}})                  # the id precedes the name
    assert r.status == 200 and r.json()["kernel"]["id"] == own and shared.kernel(second) is None
    r = patch({"kernel": {}})
    assert r.status == 200 and r.json()["kernel"]["id"] == own
    assert patch({"notebook": {"path": "old.ipynb"}}).json()["path"] == "old.ipynb"


@pytest.mark.parametrize("body,word", [(b"", "No JSON data"), (b" \n", "No JSON data"), (b"null", "No JSON data"), (b"{}", "path"),
                                       ({"path": "x"}, "type"), ({"type": "x"}, "path"), ({"path": None, "type": "x"}, "path"),
                                       ({"path": "x", "type": "x", "kernel": {"id": "x"}}, "kernel.id"),
                                       ({"path": "x" * 5000, "type": "x"}, "path")])
def test_a_session_says_what_it_lacks(shared, body, word):
    r = shared.request("POST", "/api/sessions", body)
    assert r.status == 400 and word in r.json()["message"], r


def test_one_path_in_flight_is_one_session(shared):
    got = []
    model = {"path": "flight.ipynb", "type": "notebook", "kernel": {"name": "python3"}}
    ask = [threading.Thread(target=lambda: got.append(shared.request("POST", "/api/sessions", model))) for _ in range(5)]
    for t in ask:
        t.start()
    for t in ask:
        t.join()
    made = {r.json()["id"] for r in got if r.status == 201}
    assert len(made) == 1 and {r.status for r in got} <= {201, 409}, got
    assert shared.request("POST", "/api/sessions", model).json()["id"] in made
    assert shared.request("DELETE", f"/api/sessions/{made.pop()}").status == 204


def test_a_session_without_its_kernel_is_gone(shared, session, kernel):
    s = session("gone.ipynb", kernel={"name": "python3"})
    assert shared.delete_kernel(s["kernel"]["id"]) == 204
    assert shared.request("DELETE", f"/api/sessions/{s['id']}").status == 410
    s = session("gone.ipynb", kernel={"name": "python3"})
    assert shared.delete_kernel(s["kernel"]["id"]) == 204
    assert s["id"] not in [x["id"] for x in shared.request("GET", "/api/sessions").json()]
    assert shared.request("GET", f"/api/sessions/{s['id']}").status == 404
    own = str(uuid.uuid4())
    s = session("gone.ipynb", kernel={"id": own, "name": "python3"})       # an id that nobody has is for a new kernel
    assert s["kernel"]["id"] == own
