#!/bin/bash
# tests/fuzz/run.sh [--seconds N] [--jobs N] [fuzzer...]
# Builds the libFuzzer harnesses (preset fuzz, clang, ASan and UBSan) and runs each for N seconds (default 120) on its
# corpus; what they find new stays in build/fuzz/corpus. Prints one line a fuzzer: executions, covered edges, features.
# Exit status 1 when one found something (the input lies in build/fuzz/findings).
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=120 jobs=1
while [ $# -gt 0 ]; do
    case $1 in
    --seconds) seconds=$2; shift 2 ;;
    --jobs) jobs=$2; shift 2 ;;
    -*) sed -n '2,6p' "$0"; exit 2 ;;
    *) break ;;
    esac
done
mkdir -p build
{ cmake --preset fuzz && cmake --build --preset fuzz -j2; } >build/fuzz.log 2>&1 || { tail -20 build/fuzz.log; exit 2; }
mkdir -p build/fuzz/findings build/fuzz/logs

run_one() {
    local name=$1 subject=${1#fuzz_} corpus dict=()
    corpus=build/fuzz/corpus/$subject
    mkdir -p "$corpus"
    [ ! -f "tests/fuzz/$subject.dict" ] || dict=("-dict=tests/fuzz/$subject.dict")
    if "build/fuzz/fuzz/$name" -max_total_time="$seconds" -timeout=30 -rss_limit_mb=4096 -print_final_stats=1 \
        -artifact_prefix=build/fuzz/findings/"$name"- "${dict[@]}" "$corpus" "tests/fuzz/corpus/$subject" \
        >"build/fuzz/logs/$name" 2>&1; then
        awk -v name="$name" '/cov: /{for(i=1;i<NF;i++){if($i=="cov:")c=$(i+1);if($i=="ft:")f=$(i+1)}}
            /number_of_executed_units/{n=$2} END{printf "%-18s %12d executions  cov %6d  ft %6d\n",name,n,c,f}' "build/fuzz/logs/$name"
    else
        printf '%-18s FOUND SOMETHING, see build/fuzz/logs/%s\n' "$name" "$name"
        return 1
    fi
}
export -f run_one
export seconds
if [ $# -eq 0 ]; then
    set -- $(cd build/fuzz/fuzz && ls | grep '^fuzz_')
fi
printf '%s\n' "$@" | xargs -P "$jobs" -I{} bash -c 'run_one {}'
