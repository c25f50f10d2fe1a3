#!/bin/bash
# tests/fuzz/run.sh [--minutes N | --seconds N] [--jobs N] [--table] [fuzzer...]
# Builds the libFuzzer harnesses (preset fuzz: clang, address and undefined-behaviour sanitizers) and runs each for so long
# (default 2 minutes) on its corpus; what they find new stays in build/fuzz/corpus. Prints the commit, then one line a
# fuzzer: executions, covered edges, features (--table: as lines of the table in tests/fuzz/README.md). Exit status 1 when
# one found something: the input lies in build/fuzz/findings. 2: wrong use, or nothing could be built.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2
usage() { sed -n '2,6p' tests/fuzz/run.sh | sed 's/^# //' >&2; exit 2; }
number() { [[ ${1:-} =~ ^[1-9][0-9]*$ ]] || usage; echo "$1"; }
seconds=120 jobs=1 table=
while [ $# -gt 0 ]; do
    case $1 in
    --seconds) seconds=$(number "${2:-}") || exit 2; shift 2 ;;
    --minutes) minutes=$(number "${2:-}") || exit 2; seconds=$((minutes * 60)); shift 2 ;;
    --jobs) jobs=$(number "${2:-}") || exit 2; shift 2 ;;
    --table) table=1; shift ;;
    -*) usage ;;
    *) break ;;
    esac
done
[ "$seconds" -gt 0 ] || usage
mkdir -p build
{ cmake --preset fuzz && cmake --build --preset fuzz --target fuzzers -j "${JOBS:-$(nproc)}"; } >build/fuzz.log 2>&1 || {
    tail -n 20 build/fuzz.log
    exit 2
}
mkdir -p build/fuzz/findings build/fuzz/logs
commit=$(git describe --always --dirty --abbrev=12 2>/dev/null || echo unknown)

run_one() {
    local name=$1 subject=${1#fuzz_} corpus dict=() log=build/fuzz/logs/$1 status
    corpus=build/fuzz/corpus/$subject
    mkdir -p "$corpus"
    [ -x "build/fuzz/fuzz/$name" ] && [ -d "tests/fuzz/corpus/$subject" ] || {
        printf '%-18s THERE IS NO SUCH FUZZER, or it has no corpus\n' "$name"
        return 1
    }
    [ ! -f "tests/fuzz/$subject.dict" ] || dict=("-dict=tests/fuzz/$subject.dict")
    "build/fuzz/fuzz/$name" -max_total_time="$seconds" -timeout=30 -rss_limit_mb=4096 -print_final_stats=1 \
        -artifact_prefix=build/fuzz/findings/"$name"- ${dict[@]+"${dict[@]}"} "$corpus" "tests/fuzz/corpus/$subject" \
        >"$log" 2>&1
    status=$?
    # A run that executed nothing has found nothing either: no pass.
    if [ $status = 0 ] && grep -q 'number_of_executed_units: [1-9]' "$log"; then
        awk -v name="$name" -v table="$table" -v seconds="$seconds" -v commit="$commit" '
            /cov: /{for(i=1;i<NF;i++){if($i=="cov:")c=$(i+1);if($i=="ft:")f=$(i+1)}}
            /number_of_executed_units/{n=$2}
            END{if(table) printf "| %s | %s | %d | %d | %d | %s |\n",name,seconds/60,n,c,f,commit
                else printf "%-18s %12d executions  cov %6d  ft %6d\n",name,n,c,f}' "$log"
    else
        printf '%-18s FOUND SOMETHING (status %d), see %s and build/fuzz/findings\n' "$name" $status "$log"
        tail -n 30 "$log" | sed 's/^/    /'
        return 1
    fi
}
export -f run_one
export seconds table commit
if [ $# -eq 0 ]; then
    # shellcheck disable=SC2046
    set -- $(cd build/fuzz/fuzz && ls | grep '^fuzz_')
fi
[ -n "$table" ] || echo "commit $commit, $seconds s each"
printf '%s\n' "$@" | xargs -P "$jobs" -I{} bash -c 'run_one {}' || exit 1
