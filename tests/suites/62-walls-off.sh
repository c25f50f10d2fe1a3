# what: attacks get through when the walls that hold them are left out (a test build), and doctor misses those
# tier: full
# timeout: 2400
. "$(dirname "$0")/lib.sh"

python=$(test_python) || broken "no environment for the tests"
runtime=$(readlink -f "$(dirname "$HOLDCELL_BIN")/../runtime") || broken "no runtime beside $HOLDCELL_BIN"
cd "$HOLDCELL_ROOT" || exit 1
{ cmake --preset walls && cmake --build --preset walls; } >"$LOGS/walls-build.log" 2>&1 ||
    broken "the test build failed: see $LOGS/walls-build.log"
ln -sfn "$runtime" build/walls/runtime
HOLDCELL_BIN=$HOLDCELL_ROOT/build/walls/bin/holdcell

limits=(--pids 128 --cpus 1 --fds 4096 --disk-mb 64 --tmp-mb 64 --inodes 4000)
passed=0 failed=0

# expect VERDICT WALLS IDS - a server without these walls, and these attacks on it
expect() {
    local want=$1 walls=$2 ids=$3 url= out=$LOGS/walls-${2:-none}.json p f s
    export HOLDCELL_TEST_WITHOUT=$walls
    echo "== without ${walls:-any}: $ids must be $want"
    if ! start_server url --memory-mb 512 "${limits[@]}"; then
        failed=$((failed + 1))
        return
    fi
    rm -f "$out"
    HC_TOKEN=$TOKEN "$python" tests/attacks/attack.py --url "$url" --ipc --mem-mb 512 "${limits[@]}" \
        --server-log "$server_log" --json "$out" --only "$ids"
    stop_server
    read -r p f s <<<"$(verdicts "$out" "$want" none)"
    passed=$((passed + p)) failed=$((failed + f + s))
}

# Such a build is never installed.
if cmake --install build/walls --prefix "$SUITE_TMP/installed" >/dev/null 2>&1 || [ -e "$SUITE_TMP/installed/bin" ]; then
    echo "the test build was installed"
    failed=1
else
    passed=1
fi

all=$(awk '!/^#/ { for (i = 2; i <= NF; i++) print $i }' tests/attacks/walls.txt | sort -u | paste -sd,)
expect HELD "" "$all"
while read -r walls ids; do
    expect BROKEN "$walls" "${ids// /,}"
done < <(grep -v '^#' tests/attacks/walls.txt)
# doctor, which is told of none of it, misses the same walls.
diagnosed() {
    local walls=$1 want=$2 got
    got=$(HOLDCELL_TEST_WITHOUT=$walls "$HOLDCELL_BIN" doctor --json 2>/dev/null | "$python" -c 'import json, sys
print(",".join(json.load(sys.stdin)["refused"]))')
    echo "== doctor without ${walls:-any}: '$got'"
    if [ "$got" = "$want" ]; then passed=$((passed + 1)); else
        echo "doctor without ${walls:-any} must say '$want'"
        failed=$((failed + 1))
    fi
}

diagnosed "" ""
while read -r walls want; do diagnosed "$walls" "$want"; done <<'END'
seccomp,daemons sandbox
landlock sandbox
caps sandbox
fds sandbox
netns network-namespace
ipcns ipc-namespace
userns no-user-namespaces-inside
root own-root
overlay own-root
disk own-root
procmask proc
memory memory-limit
pids pids-limit
cpu cpu-limit
END
counts $passed $failed 0
