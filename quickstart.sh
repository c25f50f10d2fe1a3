#!/bin/bash
# quickstart.sh [NOTEBOOK]
#
# From a bare Debian 12 to a notebook executed in a sandbox: installs what is missing,
# builds holdcell and the Python runtime, starts a server of its own, runs the notebook
# (notebooks/weather.ipynb) through it with an untouched Jupyter client (run_notebook.py
# inherits from its classes, to tell failures better), and stops the server again.
# Results are in out/. Safe to repeat; the second run takes seconds.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1

# shellcheck source=scripts/setup.sh
. scripts/setup.sh

notebook=${1:-notebooks/weather.ipynb}
case $notebook in -h | --help) sed -n '2,8p' "$0" | sed 's/^# \{0,1\}//'; exit 0 ;; esac
[ -f "$notebook" ] || fail "no such notebook: $notebook"
[ "$(uname -s)" = Linux ] && [ "$(uname -m)" = x86_64 ] || fail "holdcell runs on Linux, x86_64"
[ "$(id -u)" = 0 ] || command -v sudo >/dev/null || fail "sandboxes need root: run this as root, or install sudo"

steps=6
server=
state=
server_log=$LOGS/server.log
began=$SECONDS

stop_server() {
    [ -n "$server" ] || return 0
    as_root kill -TERM "$server" 2>/dev/null
    for _ in $(seq 150); do
        kill_check || break
        sleep 0.1
    done
    kill_check && as_root kill -KILL "$server" 2>/dev/null
    wait "$server" 2>/dev/null
    server=
}
kill_check() { as_root kill -0 "$server" 2>/dev/null; }

clean_up() {
    stop_server
    [ -z "$state" ] || as_root rm -rf "$state"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

step 1 $steps "Packages"
setup_packages || exit 1

step 2 $steps "Building holdcell"
setup_build || exit 1

step 3 $steps "The Python runtime for sessions (about 900 MB; the first time takes a minute or two)"
setup_runtime || exit 1

step 4 $steps "A Jupyter client, in an environment of its own"
client=$(make_venv tests/requirements/client.txt) || exit 1
say "      $client"

step 5 $steps "Starting the server"
token=$(/usr/bin/python3 -c 'import secrets; print(secrets.token_hex(16))')
state=$(mktemp -d "${TMPDIR:-/tmp}/holdcell-quickstart.XXXXXX") || fail "no folder for the state of the server"
port=$(free_port)
# The token goes by the environment: the process list shows arguments.
export HOLDCELL_TOKEN=$token
sudo=()
[ "$(id -u)" = 0 ] || sudo=(sudo --preserve-env=HOLDCELL_TOKEN)
${sudo[@]+"${sudo[@]}"} build/release/bin/holdcell serve --listen "127.0.0.1:$port" --state-dir "$state/server" \
    >"$server_log" 2>&1 </dev/null &
server=$!
ready() {
    /usr/bin/python3 - "$port" <<'PYTHON' 2>/dev/null
import os, sys, urllib.request
request = urllib.request.Request(f"http://127.0.0.1:{sys.argv[1]}/api",
                                 headers={"Authorization": "token " + os.environ["HOLDCELL_TOKEN"]})
urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=5).read()
PYTHON
}
started=$SECONDS
until ready; do
    kill_check || {
        tail -n 25 "$server_log" | sed 's/^/    /' >&2
        fail "the server did not start; its log: $server_log"
    }
    [ $((SECONDS - started)) -lt 60 ] || fail "the server does not answer; its log: $server_log"
    sleep 0.1
done
say "      http://127.0.0.1:$port/ (log: $server_log)"

step 6 $steps "Running $notebook in a sandbox"
"$client" notebooks/run_notebook.py "$notebook" --url "http://127.0.0.1:$port" --out out || {
    status=$?
    # It has said why. Only where the server is to blame (2, or it is gone) its log tells more.
    [ $status = 2 ] || ! kill_check || exit $status
    tail -n 10 "$server_log" | sed 's/^/    /' >&2
    fail "the notebook did not run to its end; the server's log: $server_log"
}
clean_up

# tests/tools/connect_lines.py follows these lines as they stand: the suites quickstart and bare.
as='sudo ' root=''
[ "$(id -u)" != 0 ] || as='' root=' --allow-root'
token=$(/usr/bin/python3 -c 'import secrets; print(secrets.token_hex(16))')
cat <<END

Done in $((SECONDS - began)) s. A server of your own:

    ${as}build/release/bin/holdcell serve --listen 127.0.0.1:8888 --token $token

A notebook in it:

    $client notebooks/run_notebook.py $notebook --url http://127.0.0.1:8888 --token $token

VS Code with its kernels in it: Select Kernel, Existing Jupyter Server, http://127.0.0.1:8888/?token=$token
Other clients: docs/CLIENTS.md. JupyterLab with its kernels in it:

    python3 -m venv clients && clients/bin/pip install jupyterlab
    JUPYTER_GATEWAY_AUTH_TOKEN=$token clients/bin/jupyter lab --gateway-url=http://127.0.0.1:8888$root
END
