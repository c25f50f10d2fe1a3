#!/bin/bash
# tests/run.sh [--full] [--only SUITE]... [--list]
#
# Builds what the tests need and runs the suites, each a script tests/suites/NN-NAME.sh.
# Prints a table and, as the last line, `N passed, N failed, N skipped` over all of
# them. Exit status: 0 only when something passed and nothing failed. Logs:
# build/test-logs/NAME.log. Without --full the suites and parts of tier `full` are
# left out and named.
#
# THE CONTRACT OF A SUITE
#   - Its first comment lines say, each on a line of its own:
#         # what: one line for the table
#         # tier: quick | full            (full: the whole suite only with --full)
#         # timeout: SECONDS              (after which it is killed; default 900)
#         # full adds: TEXT               (optional: what it does more with --full)
#         # beside: others | quick | all   (optional: it may run while other such suites run; `quick`: in the quick
#                                          tier alone; `all`: beside any other, but only when nobody else wants the
#                                          processors. A suite without the line has the machine to itself, but for those.)
#   - It runs as `bash tests/suites/NN-NAME.sh` in the root of the source tree, with
#         HOLDCELL_TIER      quick | full
#         HOLDCELL_ROOT      the source tree
#         HOLDCELL_BIN       build/release/bin/holdcell
#         HOLDCELL_RUNTIME   the runtime (absolute path)
#         HOLDCELL_LOGS      build/test-logs; SUITE_LOG its own log, SUITE_TMP an own empty folder
#         JOBS               how many compilers or tests at once
#     Its output goes to its log. tests/suites/lib.sh has helpers: environments by lock
#     file, counts of ctest and pytest.
#   - Its last line is `passed=N failed=N skipped=N`. A suite that prints no such line,
#     that counts nothing, or that exits with another status than 0 while nothing failed,
#     counts as one failure. Exit status 0 means that nothing failed.
#   - It leaves nothing running. What it starts it ends, also when it is terminated.
#   - Those that have the machine to themselves come first, in the order of their names; then the others, LANES of
#     them at once (environment; default 3, beside guests 2), the one with the longest timeout first. Those beside all run from the
#     beginning, one after the other, and take a lane when the lanes begin. None needs another.
set -u

# One function, read whole before it runs: the file may be edited meanwhile.
main() {
    cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
    here=$PWD

    tier=quick
    only=()
    list=
    while [ $# -gt 0 ]; do
        case $1 in
        --full) tier=full; shift ;;
        --only) only+=("${2:?--only needs the name of a suite}"); shift 2 ;;
        --list) list=1; shift ;;
        -h | --help) sed -n '2,8p' "$0" | sed 's/^# \{0,1\}//'; exit 0 ;;
        *) echo "run.sh: unknown word '$1' (see --help)" >&2; exit 2 ;;
        esac
    done

    header() { sed -n "s/^# $2: *//p" "$1" | head -n 1; } # header FILE KEY
    short() { basename "$1" .sh | sed 's/^[0-9]*-//'; }

    chosen() { # chosen NAME
        [ ${#only[@]} -gt 0 ] || return 0
        local name
        for name in "${only[@]}"; do [ "$name" != "$1" ] || return 0; done
        return 1
    }

    suites=()
    for file in tests/suites/[0-9]*-*.sh; do
        [ -e "$file" ] || continue
        if [ -n "$list" ]; then
            printf '%-16s %-6s %s\n' "$(short "$file")" "$(header "$file" tier)" "$(header "$file" what)"
        fi
        if chosen "$(short "$file")"; then suites+=("$file"); fi
    done
    [ -z "$list" ] || exit 0
    for name in ${only[@]+"${only[@]}"}; do
        [ -e "$(ls tests/suites/[0-9]*-"$name".sh 2>/dev/null | head -n 1)" ] || {
            echo "run.sh: no suite '$name'; there are: $(for f in tests/suites/[0-9]*; do short "$f"; done | xargs)" >&2
            exit 2
        }
    done

    [ "$(id -u)" = 0 ] || { echo "run.sh: the tests start sandboxes: run it as root (sudo tests/run.sh)" >&2; exit 2; }

    QUICK_MOST=900
    LOGS=$here/build/test-logs
    rm -rf "$LOGS"
    mkdir -p "$LOGS"
    lanes=${LANES:-$([ $tier = full ] && echo 2 || echo 3)}
    export HOLDCELL_ROOT=$here HOLDCELL_LOGS=$LOGS HOLDCELL_BIN=$here/build/release/bin/holdcell
    export JOBS=${JOBS:-$(nproc)} PYTHONDONTWRITEBYTECODE=1 LC_ALL=C.UTF-8
    began=$SECONDS

    passed=0 failed=0 skipped=0
    rows=()
    count() { # count NAME PASSED FAILED SKIPPED SECONDS NOTE
        passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
        rows+=("$(printf '%-16s %7d %7d %8d %6d s  %s' "$1" "$2" "$3" "$4" "$5" "$6")")
        printf '%s\n' "${rows[-1]}"
    }

    # suite_result LOG STATUS - prints "passed failed skipped note"
    suite_result() {
        local line p f s note=
        line=$(tail -n 1 "$1" 2>/dev/null)
        if [[ $line =~ ^passed=([0-9]+)\ failed=([0-9]+)\ skipped=([0-9]+)$ ]]; then
            p=${BASH_REMATCH[1]} f=${BASH_REMATCH[2]} s=${BASH_REMATCH[3]}
            if [ "$2" != 0 ] && [ "$f" = 0 ]; then f=1 note="exit status $2"; fi
            if [ $((p + f + s)) = 0 ]; then f=1 note="it counted nothing"; fi
        else
            p=0 f=1 s=0 note="no count at its end, exit status $2"
        fi
        case $2 in 124 | 137) note="time-out" ;; esac
        echo "$p $f $s $note"
    }

    declare -A running=() began_at=() folder=() # by pid: the suite's file, when it began, its SUITE_TMP
    start_suite() { # start_suite FILE TIER [COMMAND...] - COMMAND starts it
        local name tmp file=$1 its_tier=$2
        shift 2
        name=$(short "$file")
        tmp=$(mktemp -d "${TMPDIR:-/tmp}/holdcell-$name.XXXXXX")
        # a process group of its own: what a time-out leaves is killed with it
        HOLDCELL_TIER=$its_tier SUITE_LOG=$LOGS/$name.log SUITE_TMP=$tmp \
            timeout --kill-after=30 "$(header "$file" timeout | grep . || echo 900)" "$@" bash "$file" \
            >"$LOGS/$name.log" 2>&1 </dev/null &
        running[$!]=$file began_at[$!]=$SECONDS folder[$!]=$tmp
    }

    end_suite() { # end_suite PID
        local pid=$1 name log status p f s note
        name=$(short "${running[$pid]}") log=$LOGS/$(short "${running[$pid]}").log
        wait "$pid"
        status=$?
        kill -KILL -- "-$pid" 2>/dev/null # timeout leads the group
        rm -rf "${folder[$pid]}"
        read -r p f s note <<<"$(suite_result "$log" $status)"
        count "$name" "$p" "$f" "$s" $((SECONDS - began_at[$pid])) "$note"
        unset "running[$pid]" "began_at[$pid]" "folder[$pid]"
        if [ "$f" != 0 ]; then
            echo "  --- $name failed; the end of $log:"
            tail -n 40 "$log" | cut -c1-240 | sed 's/^/  | /'
        fi
    }

    beside_all=() idle=0 # "TIER FILE" of those beside all that wait; the pid of the one that runs, or 0
    next_beside_all() {
        [ $idle = 0 ] && [ ${#beside_all[@]} -gt 0 ] || return 0
        start_suite "${beside_all[0]#* }" "${beside_all[0]%% *}" chrt --idle 0
        idle=$!
        beside_all=("${beside_all[@]:1}")
    }

    room() { # room FOR - alone: no suite runs, but one beside all; lane: a lane is free; none: no suite runs or waits
        next_beside_all
        case $1 in
        alone) [ $((${#running[@]} - (idle != 0))) = 0 ] ;;
        lane) [ ${#running[@]} -lt "$lanes" ] ;; # that beside all has one: several that work all the time would starve it
        none) [ ${#running[@]} = 0 ] ;;
        esac
    }

    told=$SECONDS
    wait_for_room() { # wait_for_room FOR - see room
        local pid words
        while ! room "$1"; do
            for pid in "${!running[@]}"; do
                ! kill -0 "$pid" 2>/dev/null || continue
                [ "$pid" != $idle ] || idle=0
                end_suite "$pid"
            done
            if [ ! -t 1 ] && [ $((SECONDS - told)) -ge 60 ] && [ ${#running[@]} -gt 0 ]; then
                words=
                for pid in "${!running[@]}"; do words+="  $(short "${running[$pid]}"): $((SECONDS - began_at[$pid])) s"; done
                echo "$words"
                told=$SECONDS
            fi
            sleep 0.5
        done
    }

    # The whole quick tier has a bound (docs/HACKING.md). A slow machine is no failure, but nobody shall miss it.
    tell_time() { # tell_time SECONDS SETUP
        printf '%d s of tests after %d s of set-up\n' "$1" "$2"
        [ "$1" -le "$QUICK_MOST" ] || printf '\n!!! TOO SLOW: the quick tier took %d s; it is to take at most %d s\n' "$1" "$QUICK_MOST"
    }

    alone() { # alone FILE TIER - whether it has the machine to itself
        case $(header "$1" beside).$2 in all.* | others.* | quick.quick) return 1 ;; esac
    }

    in_order() { # in_order "TIER FILE"... - the same lines as they are to be run
        local line
        for line in "$@"; do
            if alone "${line#* }" "${line%% *}"; then echo "0 0 $line"; else echo "1 $(header "${line#* }" timeout) $line"; fi
        done | sort -s -k1,1n -k2,2nr | cut -d' ' -f3-
    }

    run_suite() { # run_suite FILE TIER - starts it as soon as there is room
        if alone "$1" "$2"; then
            start_suite "$1" "$2"
            wait_for_room alone
        else
            wait_for_room lane
            start_suite "$1" "$2"
        fi
    }

    # On an interrupt the running suites go with us, and what they have in their folders.
    interrupted() {
        [ ${#running[@]} = 0 ] || kill -TERM "${!running[@]}" 2>/dev/null
        wait
        [ ${#folder[@]} = 0 ] || rm -rf "${folder[@]}"
        echo "interrupted"
        exit 130
    }
    trap interrupted INT TERM

    if [ "${HOLDCELL_NO_SETUP:-}" != 1 ]; then
        echo "setup (logs: $LOGS)"
        if ! LOGS=$LOGS bash scripts/setup.sh --tests; then
            count setup 0 1 0 $((SECONDS - began)) "nothing can run"
            printf '\n%d passed, %d failed, %d skipped\n' $passed $failed $skipped
            exit 1
        fi
    fi
    tests_began=$SECONDS
    HOLDCELL_RUNTIME=$(readlink -f build/release/runtime)
    export HOLDCELL_RUNTIME
    # Of which build the results speak, for whoever reads them later (tests/tools/own_results.py).
    printf '%s\n%s, %s tier\n%s cores, Linux %s\n' "$("$HOLDCELL_BIN" version 2>/dev/null | head -n 1)" "$(date -u +%F)" $tier \
        "$(nproc)" "$(uname -r)" >"$LOGS/run.txt"

    head=$(printf '%-16s %7s %7s %8s %8s' suite passed failed skipped time)
    printf '\n%s\n' "$head"
    left=() wanted=()
    for file in ${suites[@]+"${suites[@]}"}; do
        if [ "$tier" = quick ] && [ "$(header "$file" tier)" = full ]; then
            if [ ${#only[@]} -gt 0 ]; then wanted+=("full $file"); continue; fi
            left+=("$(short "$file"): $(header "$file" what)")
            continue
        fi
        wanted+=("$tier $file")
        more=$(header "$file" "full adds")
        if [ "$tier" = quick ] && [ -n "$more" ]; then left+=("$(short "$file"): $more"); fi
    done
    ordered=()
    while read -r its_tier file; do
        if [ "$(header "$file" beside)" = all ]; then beside_all+=("$its_tier $file"); else ordered+=("$its_tier $file"); fi
    done < <(in_order ${wanted[@]+"${wanted[@]}"})
    for line in ${ordered[@]+"${ordered[@]}"}; do run_suite "${line#* }" "${line%% *}"; done
    wait_for_room none

    printf '\n%s\n' "$head"
    printf '%s\n' ${rows[@]+"${rows[@]}"}
    if [ ${#left[@]} -gt 0 ]; then
        printf '\nLeft out of the quick tier (tests/run.sh --full runs it):\n'
        printf '  %s\n' "${left[@]}"
    fi
    printf '\n%d s in all, logs in %s\n' $((SECONDS - began)) "$LOGS"
    if [ "$tier" = quick ] && [ ${#only[@]} = 0 ]; then tell_time $((SECONDS - tests_began)) $((tests_began - began)); fi
    printf '\n%d passed, %d failed, %d skipped\n' $passed $failed $skipped
    [ $failed = 0 ] && [ $passed -gt 0 ]
}

main "$@"
exit
