# lib.sh - helpers for the scripts in tests/suites (sourced; the contract: tests/run.sh).

set -u
. "$HOLDCELL_ROOT/scripts/common.sh"
LOGS=$HOLDCELL_LOGS

full_tier() { [ "$HOLDCELL_TIER" = full ]; }

# counts PASSED FAILED SKIPPED - the last line, and the exit status to end with
counts() {
    echo "passed=$1 failed=$2 skipped=$3"
    [ "$2" = 0 ]
}

# broken TEXT - the suite cannot run at all
broken() {
    echo "$*"
    echo "passed=0 failed=1 skipped=0"
    exit 1
}

# test_python - path of the interpreter with everything of tests/requirements/tests.txt
test_python() { make_venv "$HOLDCELL_ROOT/tests/requirements/tests.txt"; }

# pytest_suite ARGUMENTS... - runs pytest in that environment and ends the suite with
# its counts. Errors in fixtures count as failures.
pytest_suite() {
    local python status
    python=$(test_python) || broken "no environment for the tests"
    "$python" -m pytest -p no:cacheprovider -ra --tb=short --junit-xml="$SUITE_TMP/junit.xml" "$@"
    status=$?
    junit_counts $status "$SUITE_TMP/junit.xml"
    exit $?
}

# junit_counts [--skips LIST] STATUS FILE... - counts of JUnit files (tests/tools/junit_counts.py)
junit_counts() { /usr/bin/python3 "$HOLDCELL_ROOT/tests/tools/junit_counts.py" "$@"; }

# verdicts FILE GOOD BAD - "passed failed skipped" of a JSON list of {"verdict": ...},
# which may lie under "results"; no file is one failure
verdicts() {
    /usr/bin/python3 - "$@" <<'PYTHON'
import json, sys
try:
    data = json.load(open(sys.argv[1]))
except (OSError, ValueError):
    print("0 1 0")
    sys.exit()
found = [row["verdict"] for row in (data["results"] if isinstance(data, dict) else data)]
good, bad = found.count(sys.argv[2]), found.count(sys.argv[3])
print(good, bad, len(found) - good - bad)
PYTHON
}

# node_modules - folder with the packages of tests/node, made once; its .bin/node is
# new enough for them. Prints the folder.
node_modules() {
    local source=$HOLDCELL_ROOT/tests/node base=$CACHE/node key dir
    key=$(cat "$source/package.json" "$source/package-lock.json" | sha256sum | cut -c1-12)
    mkdir -p "$base" 2>/dev/null || true
    [ -w "$base" ] || base=$HOLDCELL_ROOT/build/node
    dir=$base/$key
    mkdir -p "$base"
    (
        flock 9
        [ ! -e "$dir/.complete" ] || exit 0
        rm -rf "$dir"
        mkdir -p "$dir" && cp "$source/package.json" "$source/package-lock.json" "$dir" &&
            npm ci --prefix "$dir" --ignore-scripts --no-audit --no-fund && touch "$dir/.complete"
    ) 9>"$base/.$key.lock" >&2 </dev/null || return 1
    echo "$dir/node_modules"
}

# start_server VARIABLE OPTIONS... - a holdcell server of the suite's own on a free
# port with the token $TOKEN; sets VARIABLE to its URL. stop_server ends it; so does
# the end of the suite.
TOKEN=test-token-$$
server_pid=
start_server() {
    local into=$1 port
    shift
    port=$(free_port)
    "$HOLDCELL_BIN" serve --listen "127.0.0.1:$port" --token "$TOKEN" --state-dir "$SUITE_TMP/state-$port" "$@" \
        >"$HOLDCELL_LOGS/server-$port.log" 2>&1 </dev/null &
    server_pid=$!
    trap 'stop_server' EXIT
    trap 'exit 143' TERM INT
    for _ in $(seq 600); do
        kill -0 $server_pid 2>/dev/null || break
        if /usr/bin/python3 - "$port" "$TOKEN" <<'PYTHON' 2>/dev/null
import sys, urllib.request
request = urllib.request.Request(f"http://127.0.0.1:{sys.argv[1]}/api", headers={"Authorization": "token " + sys.argv[2]})
urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=5).read()
PYTHON
        then
            printf -v "$into" '%s' "http://127.0.0.1:$port"
            server_log=$HOLDCELL_LOGS/server-$port.log
            return 0
        fi
        sleep 0.1
    done
    tail -n 20 "$HOLDCELL_LOGS/server-$port.log"
    return 1
}

stop_server() {
    [ -n "$server_pid" ] || return 0
    kill -TERM "$server_pid" 2>/dev/null
    wait "$server_pid" 2>/dev/null
    server_pid=
}

# prints_results FILE - what quickstart.sh printed there says where its results lie, with what the data says of itself
prints_results() {
    local what missing=0 hottest
    hottest=$(tail -n +2 "$HOLDCELL_ROOT/notebooks/data/seattle-weather.csv" | cut -d, -f3 | sort -g | tail -n 1)
    for what in 'out/weather\.ipynb' 'out/weather\.html' 'out/weather-1\.png, out/weather-2\.png' "hottest day  *${hottest//./\\.} "; do
        grep -q -- "$what" "$1" || { echo "it does not print: $what"; missing=1; }
    done
    return $missing
}
