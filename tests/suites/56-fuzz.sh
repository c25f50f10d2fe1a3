# what: every parser under libFuzzer with its corpus, a few seconds each (clang, address and undefined-behaviour sanitizers)
# tier: quick
# timeout: 1500
# beside: others
# full adds: half a minute each
. "$(dirname "$0")/lib.sh"

seconds=3
if full_tier; then seconds=30; fi
tests/fuzz/run.sh --seconds $seconds --jobs "$JOBS" | tee "$SUITE_TMP/out"
status=${PIPESTATUS[0]}
[ "$status" != 2 ] || broken "the fuzzers could not be built"
passed=$(grep -c '^fuzz_[a-z0-9_]* .* executions ' "$SUITE_TMP/out")
wanted=$(find tests/fuzz -name 'fuzz_*.c' | wc -l)
failed=$((wanted - passed))
[ "$status" = 0 ] || [ $failed -gt 0 ] || failed=1
counts "$passed" $failed 0
