"""The OpenAPI document: it is valid, it lists the routes and no others, and what the server answers is what it says."""

import json
import os
import re
import subprocess
import uuid

import pytest
import yaml
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from channels import Channels
from principals import entry
from rawhttp import Raw, upgrade
from server import BIN, ROOT
from test_profiles import ProfileServer

GHOST = "00000000-0000-4000-8000-000000000000"
METHODS = {"get", "head", "post", "put", "patch", "delete"}


@pytest.fixture(scope="module")
def document(shared):
    r = shared.request("GET", "/api/swagger.json", token=False)
    assert r.status == 200 and r.headers["Content-Type"] == "application/json"
    return r.json()


def documented(document):
    return {(m.upper(), path) for path, item in document["paths"].items() for m in item if m in METHODS}


def tables():
    """(method, pattern) of the route tables in the source."""
    found = set()
    for name in ("jupyter/routes.c", "probes.c"):
        with open(os.path.join(ROOT, "gateway", name), encoding="utf-8") as f:
            found |= set(re.findall(r'\{\s*"([A-Z]+)",\s*"(/[^"]*)",\s*\w+,', f.read()))
    return found


class Checked:
    """A server whose every answer is held against the document."""

    def __init__(self, server, document):
        self.server, self.document, self.seen = server, document, set()

    def resolved(self, node):
        while isinstance(node, dict) and "$ref" in node:
            ref = node["$ref"]
            node = self.document
            for part in ref[2:].split("/"):
                node = node[part.replace("~1", "/")]
        return node

    def operation(self, method, path):
        path = path.split("?")[0]
        for template, item in self.document["paths"].items():
            pattern = re.escape(template).replace(r"\{path\}", ".+")
            if re.fullmatch(re.sub(r"\\\{\w+\\\}", "[^/]+", pattern), path) and method.lower() in item:
                return template, item[method.lower()]
        raise AssertionError(f"{method} {path} is not documented")

    def validate(self, schema, value):
        Draft202012Validator({"$ref": "#/it", "it": schema, "components": self.document["components"]}).validate(value)

    def check(self, method, path, status, headers, body):
        template, op = self.operation(method, path)
        responses = op["responses"]
        assert str(status) in responses, f"{method} {template} says nothing of {status}"    # `default` is for what nobody foresees
        told = self.resolved(responses[str(status)])
        self.seen.add((method, template, str(status)))
        for name in told.get("headers", ()):
            assert headers.get(name) is not None, f"{method} {path}: {status} without {name}"
        content = told.get("content")
        if not content or method == "HEAD":
            assert body == b"", (method, path, status, body[:200])
            return
        kind = headers.get("Content-Type").split(";")[0]
        assert kind in content or "*/*" in content, f"{method} {path}: {kind} is not documented"
        if kind == "application/json" and kind in content:
            self.validate(content[kind]["schema"], json.loads(body))

    def __call__(self, method, path, body=None, status=None, **kw):
        if isinstance(body, dict):
            schema = self.operation(method, path)[1]["requestBody"]["content"]["application/json"]["schema"]
            self.validate(schema, body)
        r = self.server.request(method, path, body, **kw)
        self.check(method, path, r.status, r.headers, r.body)
        assert status is None or r.status == status, r
        return r


@pytest.fixture(scope="module")
def ask(shared, document):
    return Checked(shared, document)


def test_the_document_is_valid_openapi(document):
    assert document["openapi"].startswith("3.1")
    OpenAPIV31SpecValidator(document).validate()


def test_the_yaml_says_the_same(shared, document):
    for path in ("/api/swagger.yaml", "/api/spec.yaml"):
        r = shared.request("GET", path, token=False)
        assert r.status == 200 and r.headers["Content-Type"] == "text/x-yaml"
        assert r.body[:1] != b"{" and yaml.safe_load(r.body) == document


def test_it_tells_the_routes_and_no_others(document):
    assert documented(document) == tables()
    ids = [op["operationId"] for item in document["paths"].values() for m, op in item.items() if m in METHODS]
    assert len(set(ids)) == len(ids)


def test_the_server_has_the_documented_methods(shared, document):
    for path, item in document["paths"].items():
        real = path.replace("{id}", GHOST).replace("{name}", "python3").replace("{path}", "logo-64x64.png")
        r = shared.request("BREW", real)
        assert r.status == 405 and json.loads(r.body)["reason"] == "Method Not Allowed", (path, r)
        assert set(r.headers["Allow"].split(", ")) == {m.upper() for m in item if m in METHODS} | {"OPTIONS"}, path
        r = shared.request("OPTIONS", real, token=False)
        assert r.status == 200 and r.body == b"", (path, r)


def test_the_document_knows_its_server(server_with):
    s = server_with("--base-url", "/a%40b/")
    document = s.request("GET", "/a%40b/api/swagger.json", token=False).json()
    assert document["servers"] == [{"url": "/a%40b"}]
    assert document["info"]["version"] in subprocess.run([BIN, "version"], capture_output=True, text=True).stdout
    assert s.request("GET", "/api/swagger.json", token=False).status == 404


def test_what_is_open_is_documented_so(shared, document):
    for path, item in document["paths"].items():
        real = path.replace("{id}", GHOST).replace("{name}", "python3").replace("{path}", "logo-64x64.png")
        for method in set(item) & METHODS:
            status = shared.request(method.upper(), real, token=False).status
            assert (status != 401) == (item[method].get("security") == []), (method, path, status)


def test_answers_about_the_server(ask):
    for path in ("/api", "/api/status", "/api/me", "/api/kernelspecs", "/api/kernelspecs/python3", "/api/swagger.json",
                 "/api/swagger.yaml", "/api/spec.yaml", "/api/kernels", "/api/sessions", "/kernelspecs/python3/kernel.json"):
        r = ask("GET", path, status=200)
        again = ask("GET", path, headers={"If-None-Match": r.headers["ETag"]})
        assert again.status == 304 and again.headers["Content-Length"] is None, path
        ask("GET", path, status=200, headers={"If-None-Match": '"other"'})
    ask("GET", "/api/me?permissions=%7B%22kernels%22:%5B%22read%22,%22fly%22%5D%7D", status=200)
    ask("GET", "/api/me?permissions=x", status=400)
    ask("GET", "/api/kernelspecs?user=bob/python3", status=200)
    ask("GET", "/api/kernelspecs?user=bob/none", status=404)
    ask("GET", "/api/kernelspecs/none", status=404)
    ask("GET", "/kernelspecs/python3/kernel.json", status=206, headers={"Range": "bytes=0-9"})
    ask("GET", "/kernelspecs/python3/kernel.json", status=416, headers={"Range": "bytes=99999999-"})
    ask("GET", "/kernelspecs/python3/none", status=404)
    ask("HEAD", "/kernelspecs/python3/kernel.json", status=200)
    for path in ("/metrics", "/healthz", "/readyz"):
        ask("GET", path, status=200)
    ask("HEAD", "/healthz", status=200)
    ask("HEAD", "/readyz", status=200)
    for path in ("/api", "/api/kernels", "/api/sessions", "/metrics"):
        ask("GET", path, status=401, token=False)


def test_answers_about_kernels(ask, shared, kernel):
    ask("POST", "/api/kernels", {"name": "none"}, status=500)
    ask("POST", "/api/kernels", b"{", status=400)
    r = ask("POST", "/api/kernels", {"name": "python3", "path": "a/b.ipynb", "env": {"KERNEL_A": "1"}}, status=201)
    kid = r.json()["id"]
    ask("POST", "/api/kernels", {"kernel_id": kid, "name": None}, status=201)
    with Channels(shared, kid) as c:
        assert c.run("1").status == "ok"
        ask("GET", f"/api/kernels/{kid}", status=200)
    ask("GET", "/api/kernels", status=200)
    ask("GET", f"/api/kernels/{kid}/limits", status=200)
    limited = ask("POST", "/api/kernels", {"limits": {"memory_mb": 200, "cpus": 0.5}}, status=201).json()["id"]
    assert ask("GET", f"/api/kernels/{limited}/limits", status=200).json()["cpus"] == 0.5
    ask("DELETE", f"/api/kernels/{limited}", status=204)
    ask("POST", "/api/kernels", {"limits": {"memory_mb": 200000}}, status=400)
    ask("POST", f"/api/kernels/{kid}/interrupt", status=204)
    ask("POST", f"/api/kernels/{kid}/restart", status=200)
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/limits"), ("POST", "/interrupt"), ("POST", "/restart"), ("GET", "/channels")):
        ask(method, f"/api/kernels/{GHOST}{path}", status=404)
    ask("GET", f"/api/kernels/{kid}/channels", status=400)
    with Raw(shared) as c:
        c.send(upgrade(shared, kid).replace(b"Version: 13", b"Version: 12"))
        status, headers, body = c.answer()
        names = {"Content-Type": headers["content-type"], "Sec-WebSocket-Version": headers["sec-websocket-version"]}
        ask.check("GET", f"/api/kernels/{kid}/channels", status, names, body)
        assert status == 426
    ask("DELETE", f"/api/kernels/{kid}", status=204)


def test_answers_about_sessions(ask, kernel):
    model = {"path": "doc.ipynb", "type": "notebook", "name": "doc", "kernel": {"name": "python3"}}
    ask("POST", "/api/sessions", {**model, "kernel": {"name": "none"}}, status=501)
    ask("POST", "/api/sessions", b"", status=400)
    r = ask("POST", "/api/sessions", model, status=201)
    url = "/api/sessions/" + r.json()["id"]
    ask("GET", url, status=200)
    ask("GET", "/api/sessions", status=200)
    ask("PATCH", url, {"name": "other"}, status=200)
    ask("PATCH", url, {"kernel": {"name": "none"}}, status=501)
    ask("PATCH", url, {"kernel": {"name": "python3", "limits": {"memory_mb": 200000}}}, status=400)
    ask("PATCH", url, {"kernel": {"id": GHOST}}, status=400)
    ask("PATCH", url, {"kernel": {"id": kernel("python3")}}, status=200)
    ask("DELETE", url, status=204)
    for method in ("GET", "DELETE"):
        ask(method, url, status=404)
    ask("PATCH", url, {"name": "x"}, status=404)


def test_answers_of_a_server_that_lists_nothing(server_with, document):
    ask = Checked(server_with("--no-list-kernels", "--max-kernels", "1"), document)
    ask("GET", "/api/kernels", status=403)
    ask("GET", "/api/sessions", status=403)
    ask("POST", "/api/kernels", {}, status=201)
    ask("POST", "/api/kernels", {"kernel_id": str(uuid.uuid4())}, status=403)
    ask("POST", "/api/sessions", {"path": "x", "type": "console"}, status=403)


def test_answers_about_profiles(document):
    s = ProfileServer({"small": {"limits": {"memory_mb": 300}}, "other": {}}, lines=[entry("ann", profile="small")]).start()
    try:
        ask = Checked(s, document)
        kid = ask("POST", "/api/kernels", {"profile": "small"}, status=201).json()["id"]
        ask("POST", "/api/kernels", {"kernel_id": kid, "profile": "small"}, status=201)
        ask("POST", "/api/kernels", {"kernel_id": kid, "profile": "other"}, status=409)
        ask("POST", "/api/kernels", {"profile": "none"}, status=400)
        model = {"path": "x", "type": "notebook", "kernel": {"profile": "small"}}
        url = "/api/sessions/" + ask("POST", "/api/sessions", model, status=201).json()["id"]
        ask("POST", "/api/sessions", {**model, "kernel": {"profile": "other"}}, status=409)
        ask("PATCH", url, {"kernel": {"id": kid, "profile": "other"}}, status=409)
        ann = Checked(s.as_("ann"), document)
        ann("POST", "/api/kernels", {"profile": "other"}, status=403)
        ann("POST", "/api/sessions", {**model, "path": "y", "kernel": {"profile": "other"}}, status=403)
    finally:
        s.close()


def test_every_operation_was_tried(ask, document):
    """Runs last: the tests above have met every operation of the document, but for the upgrade itself."""
    assert {(m, p) for m, p, _ in ask.seen} == documented(document)
