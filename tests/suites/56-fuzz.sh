# what: every parser under libFuzzer, half a minute each (clang, address and undefined-behaviour sanitizers); the suite unit replays their corpora
# tier: full
# timeout: 1500
# beside: others
. "$(dirname "$0")/lib.sh"

tests/fuzz/run.sh --seconds 30 --jobs "$JOBS" | tee "$SUITE_TMP/out"
status=${PIPESTATUS[0]}
[ "$status" != 2 ] || broken "the fuzzers could not be built"
passed=$(grep -c '^fuzz_[a-z0-9_]* .* executions ' "$SUITE_TMP/out")
wanted=$(find tests/fuzz -name 'fuzz_*.c' | wc -l)
failed=$((wanted - passed))
[ "$status" = 0 ] || [ $failed -gt 0 ] || failed=1
counts "$passed" $failed 0
