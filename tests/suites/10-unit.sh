# what: unit tests in C and fuzz corpora, under the address and undefined-behaviour sanitizers
# tier: quick
# timeout: 1500
. "$(dirname "$0")/lib.sh"

cmake --preset asan && cmake --build --preset asan -j "$JOBS" || broken "the asan build failed"
ctest --test-dir build/asan --output-on-failure -j "$JOBS" --output-junit "$SUITE_TMP/ctest.xml"
junit_counts $? "$SUITE_TMP/ctest.xml"
