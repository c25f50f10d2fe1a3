# what: our parsers against h11, websockets and Python's UTF-8
# tier: quick
# timeout: 900
# beside: others
# full adds: ten times as many mutations
. "$(dirname "$0")/lib.sh"

[ -x build/asan/tests/protocol_verdict ] || cmake --build --preset asan -j "$JOBS" --target protocol_verdict ||
    broken "protocol_verdict does not build"
full_tier && export DIFFERENTIAL_ROUNDS=10
HOLDCELL_BUILD=$PWD/build/asan pytest_suite tests/differential
