"""Settings from the command line, the environment, and the names of Jupyter Kernel Gateway."""

import json
import os
import re
import socket
import subprocess

import pytest

from server import BIN, ROOT, Server, free_port, read, wait_for

# What jupyter-kernel-gateway 3.0.1 reads: os.getenv() in its source, and class_trait_names(config=True) of
# KernelGatewayApp, JupyterWebsocketPersonality and NotebookHTTPPersonality with JupyterApp's own.
KG_VARIABLES = """ALLOW_CREDENTIALS ALLOW_HEADERS ALLOW_METHODS ALLOW_NOTEBOOK_DOWNLOAD ALLOW_ORIGIN API AUTH_TOKEN BASE_URL
    CELL_PARSER CERTFILE CLIENT_CA DEFAULT_KERNEL_NAME ENV_PROCESS_WHITELIST ENV_WHITELIST EXPOSE_HEADERS FORCE_KERNEL_NAME
    IP KEYFILE LIST_KERNELS MAX_AGE MAX_KERNELS PORT PORT_RETRIES PRESPAWN_COUNT SEED_URI SSL_VERSION STATIC_PATH
    TRUST_XHEADERS WS_PING_INTERVAL_SECS""".split()
KG_TRAITS = {
    "KernelGatewayApp": """allow_credentials allow_headers allow_methods allow_origin answer_yes api auth_token
        authorizer_class base_url certfile client_ca config_file config_file_name cookie_secret cookie_secret_file
        default_kernel_name env_process_whitelist expose_headers force_kernel_name generate_config
        identity_provider_class ip kernel_manager_class kernel_spec_manager_class kernel_websocket_connection_class
        keyfile log_datefmt log_format log_level logging_config max_age max_kernels port port_retries prespawn_count
        seed_uri show_config show_config_json ssl_version trust_xheaders ws_ping_interval""",
    "JupyterWebsocketPersonality": "env_whitelist list_kernels",
    "NotebookHTTPPersonality": "allow_notebook_download cell_parser comment_prefix static_path",
    "MappingKernelManager": """allow_tracebacks allowed_message_types buffer_offline_messages cull_busy cull_connected
        cull_idle_timeout cull_interval default_kernel_name kernel_info_timeout kernel_manager_class root_dir
        shared_context traceback_replacement_message transport_encryption untracked_message_types use_pending_kernels""",
}
KG_ALIASES = "api certfile client-ca config ip keyfile port port_retries seed_uri ssl_version".split()
KG_FLAGS = "--debug --generate-config --show-config --show-config-json -y".split()


def table():
    return subprocess.run([BIN, "serve", "--help-kernel-gateway"], capture_output=True, text=True, check=True).stdout


def clean():
    return {n: v for n, v in os.environ.items() if not n.startswith(("KG_", "HOLDCELL_"))}


def refused(*options, **env):
    got = subprocess.run([BIN, "serve", *options], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
                         env={**clean(), "HOLDCELL_GATEWAY": "/bin/false", **env})
    assert got.returncode in (1, 2) and got.stdout == "", got
    line, = got.stderr.splitlines()
    return line.removeprefix("holdcell serve: ")


class Bare(Server):
    """One whose command line is only what the test gives."""

    def __init__(self, *options, **kw):
        super().__init__(*options, **kw)
        self.env = {**{n: v for n, v in self.env.items()}, "HOLDCELL_STATE_DIR": self.state}

    def argv(self):
        return [BIN, "serve", *self.options]


@pytest.fixture
def bare():
    own = []

    def make(*options, **env):
        s = Bare(*options, env={n: v for n, v in env.items()})
        own.append(s)
        return s
    yield make
    for s in own:
        s.close()


# --- the table ----------------------------------------------------------------------------

def test_every_name_of_kernel_gateway_has_a_row():
    rows = table()
    for name in KG_VARIABLES:
        assert f"| `KG_{name}` |" in rows, name
    for owner, names in KG_TRAITS.items():
        for name in names.split():
            assert f"`--{owner}.{name}`" in rows, name
    for name in KG_ALIASES:
        assert f"`--{name}`" in rows, name
    for name in KG_FLAGS:
        assert f"`{name}`" in rows, name
    assert len(re.findall(r"^\| `KG_", rows, re.M)) == len(KG_VARIABLES)


def test_the_document_has_the_programs_table():
    assert read(os.path.join(ROOT, "docs", "OPTIONS.md")).endswith("\n\n" + table())


def test_every_row_is_our_option_or_says_why_not():
    options = set(re.findall(r"^  --([a-z-]+)", subprocess.run([BIN, "serve", "--help"], capture_output=True,
                                                             text=True).stdout, re.M))
    later = {"iopub-rate-window"}       # refused by its own name
    for line in table().splitlines()[2:]:
        here = line.rstrip(" |").rsplit(" | ", 1)[1]
        if "refused: " in here or here.startswith("no effect: "):
            assert len(here) > 20, line
        else:
            assert re.search(r"`--([a-z-]+)", here).group(1) in options | later, line


# --- a server that only knows the environment ------------------------------------------------

def test_a_kernel_gateways_environment_starts_it(bare, tmp_path):
    path = tmp_path / "seed.ipynb"
    path.write_text(json.dumps({"nbformat": 4, "cells": [{"cell_type": "code", "source": "x = 1"}],
                                "metadata": {"kernelspec": {"name": "python3"}}}))
    s = bare("-y", "--JupyterWebsocketPersonality.list_kernels=True", KG_LIST_KERNELS="False",
             KG_AUTH_TOKEN="t0ken", KG_IP="127.0.0.1", KG_BASE_URL="gw", KG_MAX_KERNELS="2", KG_PRESPAWN_COUNT="1",
             KG_SEED_URI=f"file://{path}", KG_API="kernel_gateway.jupyter_websocket", KG_ALLOW_ORIGIN="*",
             KG_WS_PING_INTERVAL_SECS="0", KG_TRUST_XHEADERS="False", KG_ENV_WHITELIST=",A,", KG_UNHEARD_OF="1", KG_FOO="1",
             KG_MAX_KERNLES="1", HOLDCELL_MAX_KERNEL="1")
    s.token = "t0ken"
    s.env["KG_PORT"] = str(s.port)
    s.spawn()
    wait_for(lambda: "holdcell serving on" in s.log() or s.proc.poll() is not None)
    assert f"holdcell serving on http://127.0.0.1:{s.port}/gw/" in s.log(), s.log()
    r = wait_for(lambda: s.request("GET", "/gw/api/kernels"))
    assert r.status == 200 and r.headers["Access-Control-Allow-Origin"] == "*"
    wait_for(lambda: len(s.request("GET", "/gw/api/kernels").json()) == 1)
    assert s.request("POST", "/gw/api/kernels", {}).status == 201
    assert s.request("POST", "/gw/api/kernels", {}).status == 403
    log = s.log()
    assert re.search('event=unknown_variable name="KG_UNHEARD_OF" note="it has no effect"', log)
    assert re.search('event=unknown_variable name="KG_MAX_KERNLES" note="did you mean KG_MAX_KERNELS[?]"', log)
    assert re.search('event=unknown_variable name="HOLDCELL_MAX_KERNEL" note="did you mean HOLDCELL_MAX_KERNELS[?]"', log)
    assert re.search('event=unknown_variable name="KG_FOO" note="it has no effect"', log), "KG_IP is another word"
    assert log.count("event=unknown_variable") == 4
    assert b"t0ken" not in open(f"/proc/{s.proc.pid}/environ", "rb").read()


def test_flags_of_kernel_gateway_come_first_and_their_token_is_wiped(bare):
    s = bare("--KernelGatewayApp.auth_token=s3cret", "--KernelGatewayApp.max_kernels", "1", "--debug", "--ip=127.0.0.1",
             HOLDCELL_TOKEN="other", KG_MAX_KERNELS="5")
    s.token = "s3cret"
    s.options.append(f"--port={s.port}")
    s.start()
    assert "s3cret" not in read(f"/proc/{s.proc.pid}/cmdline")
    s.start_kernel()
    assert s.request("POST", "/api/kernels", {}).status == 403
    assert s.request("GET", "/api/kernels", headers={"Authorization": "token other"}).status == 401


def test_the_variables_of_our_own_options(bare):
    s = bare("--no-auth", HOLDCELL_TOKEN="unused", HOLDCELL_NO_LIST_KERNELS="yes", HOLDCELL_CORS_MAX_AGE="",
             HOLDCELL_DEFAULT_KERNEL="python3")
    s.token = None
    s.env["HOLDCELL_LISTEN"] = f"127.0.0.1:{s.port}"
    s.env["KG_PORT"] = str(s.port)         # says the same
    s.start()
    assert s.request("GET", "/api/kernels").status == 403


def test_another_port_is_tried_when_that_is_wished(bare):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert "Address already in use" in refused("--no-auth", KG_PORT=str(port))
        s = bare("--no-auth", KG_PORT=str(port), KG_PORT_RETRIES="50").spawn()
        s.token = None
        m = wait_for(lambda: re.search(r"holdcell serving on http://127.0.0.1:(\d+)/", s.log()))
        s.port = int(m.group(1))
        assert s.port != port and s.request("GET", "/api").status == 200


# --- what is refused ---------------------------------------------------------------------------

@pytest.mark.parametrize("options, env, said", [
    ([], {"KG_API": "kernel_gateway.notebook_http"}, "KG_API: 'kernel_gateway.notebook_http' is not supported: "),
    ([], {"KG_SEED_URI": "https://h/a.ipynb"}, "KG_SEED_URI: 'https://h/a.ipynb' is a URL; the server fetches nothing"),
    ([], {"KG_PORT": "tcp://10.0.0.1:8888"}, "KG_PORT: 'tcp://10.0.0.1:8888' is not a number"),
    ([], {"KG_PORT": "1", "HOLDCELL_PORT": "2"}, "KG_PORT contradicts HOLDCELL_PORT"),
    ([], {"KG_PORT": "1", "HOLDCELL_LISTEN": "127.0.0.1:2"}, "KG_PORT contradicts HOLDCELL_LISTEN"),
    ([], {"KG_AUTH_TOKEN": "a", "HOLDCELL_TOKEN": "b"}, "HOLDCELL_TOKEN contradicts KG_AUTH_TOKEN"),
    ([], {"HOLDCELL_TOKEN": "b", "HOLDCELL_NO_AUTH": "1"}, "HOLDCELL_TOKEN contradicts HOLDCELL_NO_AUTH"),
    ([], {"HOLDCELL_TOKEN": ""}, "HOLDCELL_TOKEN is empty; --no-auth asks for no token"),
    ([], {"KG_AUTH_TOKEN": ""}, "KG_AUTH_TOKEN is empty; --no-auth asks for no token"),
    ([], {"KG_IP": "0.0.0.0"}, "option --listen: 0.0.0.0:8888 is not a loopback address, and no token is given"),
    ([], {"KG_ENV_WHITELIST": "A,2B"}, "KG_ENV_WHITELIST: option --env-allow: 'A,2B' is not a list of names"),
    ([], {"KG_PRESPAWN_COUNT": "3", "KG_MAX_KERNELS": "2"}, "option --prespawn: 3 kernels are more than --max-kernels 2"),
    ([], {"HOLDCELL_NO_AUTH": "maybe"}, "HOLDCELL_NO_AUTH: 'maybe' is none of true, false, yes, no, on, off, 1, 0"),
    (["--port", "1", "--KernelGatewayApp.port=2"], {}, "option --KernelGatewayApp.port contradicts option --port"),
    (["--listen", "127.0.0.1:1", "--port", "2"], {}, "option --port contradicts option --listen"),
    (["--KernelGatewayApp.prot=1"], {}, "unknown option --KernelGatewayApp.prot; did you mean --KernelGatewayApp.port?"),
    (["--generate-config"], {}, "option --generate-config is not supported: "),
    (["--port_retris=1"], {}, "unknown option --port_retris"),
])
def test_a_wrong_setting_is_told_by_the_name_that_it_was_given_by(options, env, said):
    assert refused(*options, **env).startswith(said)


def test_each_variable_that_is_refused_says_so():
    for line in table().splitlines()[2:]:
        m = re.match(r"\| `(KG_\w+)` \|.*refused: ", line)
        if m:
            assert refused(**{m.group(1): "some-value"}).startswith(m.group(1)), line
