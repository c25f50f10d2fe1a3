# what: cells from users' reports with their right outcomes, in both framings
# tier: quick
# timeout: 1200
# beside: others
# full adds: every case in the v1 framing too
. "$(dirname "$0")/lib.sh"

python=$(test_python) || broken "no environment for the tests"
url=
passed=0 failed=0 skipped=0

cases() { # cases PROTO NAME OPTIONS... - against the server that runs
    local proto=$1 name=$2 status words=() p f s
    shift 2
    [ "$proto" = default ] || words=(--proto "$proto")
    "$python" tests/cases/run.py --url "$url" --token "$TOKEN" --json "$SUITE_TMP/$proto-$name.json" \
        ${words[@]+"${words[@]}"} "$@"
    status=$?
    read -r p f s <<<"$(verdicts "$SUITE_TMP/$proto-$name.json" PASS FAIL)"
    if [ $status != 0 ] && [ "$f" = 0 ]; then f=1; fi
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

few=()
full_tier || few=(C01 C05 C16 C29)
start_server url || broken "the server did not start"
cases default most --have same_host --leave idle_cull_5s
cases v1 most --have same_host --leave idle_cull_5s ${few[@]+"${few[@]}"}
stop_server

start_server url --cull-idle-timeout 5 --cull-interval 1 --cull-connected || broken "the server that culls did not start"
cases default cull --have same_host,idle_cull_5s --needing idle_cull_5s
! full_tier || cases v1 cull --have same_host,idle_cull_5s --needing idle_cull_5s
counts $passed $failed $skipped
