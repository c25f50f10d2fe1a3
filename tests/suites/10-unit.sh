# what: each unit test in C and each fuzz corpus, under the address and undefined-behaviour sanitizers
# tier: quick
# timeout: 1500
# full adds: the tests that wait for long deadlines
. "$(dirname "$0")/lib.sh"

cmake --preset asan && cmake --build --preset asan -j "$JOBS" || broken "the asan build failed"
if full_tier; then export HOLDCELL_SLOW_TESTS=1; fi
# What counts the tests of a program reads its output: all of it.
ctest --test-dir build/asan --output-on-failure -j $((2 * JOBS)) --output-junit "$SUITE_TMP/ctest.xml" \
    --test-output-size-passed 2000000 --test-output-size-failed 2000000
/usr/bin/python3 tests/tools/unit_counts.py $? "$SUITE_TMP/ctest.xml" tests/unit/skips.txt
