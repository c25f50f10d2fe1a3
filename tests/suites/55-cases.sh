# what: cells from users' reports with their right outcomes, in both framings
# tier: quick
# timeout: 1200
# beside: others
. "$(dirname "$0")/lib.sh"

python=$(test_python) || broken "no environment for the tests"
url=
start_server url || broken "the server did not start"
passed=0 failed=0 skipped=0
for proto in default v1; do
    words=()
    [ $proto = default ] || words=(--proto $proto)
    if [ $proto = v1 ] && ! full_tier; then words+=(C01 C05 C16 C29); fi
    "$python" tests/cases/run.py --url "$url" --token "$TOKEN" --have same_host --json "$SUITE_TMP/$proto.json" \
        ${words[@]+"${words[@]}"}
    status=$?
    counted=$(verdicts "$SUITE_TMP/$proto.json" PASS FAIL)
    read -r p f s <<<"$counted"
    if [ $status != 0 ] && [ "$f" = 0 ]; then f=1; fi
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
done
counts $passed $failed $skipped
