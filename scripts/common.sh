# common.sh - what quickstart.sh and tests/run.sh share: messages, logs, progress,
# virtual environments. Sourced by bash scripts; sets ROOT and LOGS.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
: "${LOGS:=$ROOT/build/logs}"
CACHE=${HOLDCELL_PREFIX:-/opt/holdcell}
mkdir -p "$LOGS"

say() { printf '%s\n' "$*"; }
fail() {
    printf '\nError: %s\n' "$*" >&2
    exit 1
}

# step N OF TEXT
step() { printf '\n[%s/%s] %s\n' "$1" "$2" "$3"; }

# run_logged NAME COMMAND... - the output goes to LOGS/NAME.log; on a terminal the
# seconds tick, elsewhere a line each 15 s shows that it lives. On failure the end
# of the log is shown.
run_logged() {
    local log=$LOGS/$1.log began=$SECONDS pid status=0 next=15
    shift
    "$@" >"$log" 2>&1 </dev/null &
    pid=$!
    while kill -0 "$pid" 2>/dev/null; do
        if [ -t 1 ]; then
            printf '\r      %d s ' $((SECONDS - began))
        elif [ $((SECONDS - began)) -ge $next ]; then
            say "      still at it, $((SECONDS - began)) s"
            next=$((next + 15))
        fi
        sleep 0.2
    done
    wait "$pid" || status=$?
    [ ! -t 1 ] || printf '\r              \r'
    if [ $status != 0 ]; then
        printf '\nError: %s failed (status %d). The end of %s:\n\n' "$1" $status "$log" >&2
        tail -n 25 "$log" | sed 's/^/    /' >&2
    fi
    return $status
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        fail "this needs root: run it as root, or install sudo"
    fi
}

# make_venv LOCKFILE - prints the python of an environment with these packages; made
# once under CACHE/venv, or build/venv where that cannot be written.
make_venv() {
    local lock=$1 base=$CACHE/venv key dir
    key=$({ cat "$lock"; /usr/bin/python3 -V; } | sha256sum | cut -c1-12)
    mkdir -p "$base" 2>/dev/null || true
    [ -w "$base" ] || { [ -e "$base/$key/.complete" ] || base=$ROOT/build/venv; }
    dir=$base/$key
    mkdir -p "$base"
    if [ ! -e "$dir/.complete" ]; then
        (
            flock 9
            [ ! -e "$dir/.complete" ] || exit 0
            rm -rf "$dir"
            /usr/bin/python3 -m venv "$dir" &&
                "$dir/bin/python3" -m pip install --disable-pip-version-check --no-input --no-deps \
                    --only-binary :all: --require-hashes -r "$lock" &&
                touch "$dir/.complete"
        ) 9>"$base/.$key.lock" >"$LOGS/venv-$(basename "$lock" .txt).log" 2>&1 </dev/null || {
            say "the environment of $lock could not be made; the end of its log:" >&2
            tail -n 10 "$LOGS/venv-$(basename "$lock" .txt).log" >&2
            return 1
        }
    fi
    say "$dir/bin/python3"
}

free_port() {
    /usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
