# what: hostile gateways on a launcher built with sanitizers: it stays alive, and nothing is left behind
# tier: quick
# timeout: 1200
# beside: others
# full adds: more lives, of seeds chosen at random
. "$(dirname "$0")/lib.sh"

cmake --preset asan && cmake --build --preset asan -j "$JOBS" || broken "the asan build failed"
passed=0 failed=0
child=
trap '[ -z "$child" ] || kill -TERM "$child" 2>/dev/null; wait; exit 143' TERM INT

storm() { # storm OPTIONS...
    local p=0 f=1
    /usr/bin/python3 tests/storm/storm.py "$@" >"$SUITE_TMP/storm.out" 2>&1 &
    child=$!
    wait $child
    child=
    cat "$SUITE_TMP/storm.out"
    if [[ $(tail -n 1 "$SUITE_TMP/storm.out") =~ ^passed=([0-9]+)\ failed=([0-9]+)\ skipped=0$ ]]; then
        p=${BASH_REMATCH[1]} f=${BASH_REMATCH[2]}
    fi
    passed=$((passed + p)) failed=$((failed + f))
}

if full_tier; then
    storm --replay tests/storm/seeds-full.txt
    storm --minutes 3
else
    storm --replay tests/storm/seeds.txt
fi
counts $passed $failed 0
