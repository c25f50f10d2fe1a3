#!/bin/bash
# tests/vm.sh [options] [-- PYTEST-ARGUMENTS...]
#
# The product in a stock Debian 12 guest: kernel 6.1, cgroup v2 alone, Landlock ABI 2.
# Runs the black-box tests marked `guest` there (tests/blackbox/test_guest.py is for
# the guest only), and once each: the unit tests of init (tests/suites/65-guest.sh has
# those of the sandbox), and the attack battery, as far as the kernel decides it.
#   --init direct|systemd  one way to boot (default: both, one after the other):
#                          direct   the server in a plain group, its own at the root; when both are booted, the
#                                   tests of what depends on that
#                          systemd  each server in a scope with Delegate=yes
#   --no-units             without the unit tests (they run in the first guest)
#   --no-attacks           without the battery (it runs in the last guest)
#   --attacks IDS          of the battery (default: what the kernel decides)
#   --no-blackbox          without the black-box tests
#   --results DIR          JUnit files and the guests' kernel logs go there
#   --memory MIB           of the guest (default 3072)
#   -- ...                 instead of `-m guest`, from tests/blackbox: -k oom, test_walls.py ...
# Needs build/release (scripts/setup.sh), and root once for the guest's image.
# Exit status: 0 when everything passed in every guest.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
# shellcheck source=scripts/common.sh
. scripts/common.sh
export PYTHONDONTWRITEBYTECODE=1 # bytecode written into the environment would change its disk

inits=() units=1 results= memory=3072 blackbox=1
# What the kernel decides. Not there: floods of output and of frames, what the gateway reads of a kernel's messages and
# shows of them, and the deadlines of cells, which need a server of their own.
attacks=FS,PC,NE,PR,LK,LG,XS,TM01,TM02,TM04,PT04,RS01,RS02,RS03,RS04,RS05,RS06,RS08,RS09,RS10,RS11,RS12,RS13,RS14,RS15,RS16,RS17
while [ $# -gt 0 ]; do
    case $1 in
    --init) inits+=("${2:?--init needs direct or systemd}"); shift 2 ;;
    --no-units) units=; shift ;;
    --no-attacks) attacks=; shift ;;
    --attacks) attacks=${2:?--attacks needs ids or their beginnings}; shift 2 ;;
    --no-blackbox) blackbox=; shift ;;
    --results) results=${2:?--results needs a folder}; shift 2 ;;
    --memory) memory=${2:?--memory needs a number}; shift 2 ;;
    --) shift; break ;;
    -h | --help) sed -n '2,20p' "$0" | sed 's/^# \{0,1\}//'; exit 0 ;;
    *) echo "vm.sh: unknown word '$1' (see --help)" >&2; exit 2 ;;
    esac
done
[ ${#inits[@]} -gt 0 ] || inits=(direct systemd)
depends=() # on where the groups are: the files for direct
if [ $# = 0 ] && [ -n "$blackbox" ]; then
    set -- -m guest
    [ ${#inits[@]} = 1 ] || depends=(test_guest.py test_admission.py test_death.py test_doctor.py test_leaks.py test_resources.py test_supervision.py test_walls.py)
fi

build=$ROOT/build/release
runtime=$(realpath "${HOLDCELL_RUNTIME:-$build/runtime}") && [ -x "$runtime/bin/python3" ] || fail "no runtime: run scripts/setup.sh"
[ -x "$build/bin/holdcell" ] || fail "no build/release: run scripts/setup.sh"
python=$(make_venv "$ROOT/tests/requirements/tests.txt") || fail "no environment for the tests"

work=$(mktemp -d "${TMPDIR:-/tmp}/holdcell-vm-tests.XXXXXX")
guest= # it runs in the background: a signal for us would wait for its end
trap 'rm -rf "$work"' EXIT
trap '[ -z "$guest" ] || kill "$guest"; wait; exit 130' INT
trap '[ -z "$guest" ] || kill "$guest"; wait; exit 143' TERM
results=${results:-$work/results}
mkdir -p "$results"

# What goes in, at the place where it was built: the unit tests know where init lies.
tree=$work/tree
mkdir -p "$tree/build/release/bin" "$tree/build/release/tests" "$tree/tests" "$tree/scripts"
cp scripts/holdcell.service "$tree/scripts/"
cp "$build"/bin/* "$tree/build/release/bin/"
cp "$build"/tests/{zconsole,scripted-kernel,inject} "$tree/build/release/tests/"
cp -r tests/attacks tests/blackbox tests/vm "$tree/tests/"
cp -r docs "$tree/" # what the tests compare the programs with
# No compiler there.
cc -static -Os -s -o "$tree/build/attack-helper" tests/attacks/helper.c || fail "the attacks' helper does not compile"
mapfile -t unit_programs < <(basename -s .c tests/unit/launcher/test_*.c)
cmake --build "$build" -j "$(nproc)" --target "${unit_programs[@]}" >&2 || fail "the unit tests of init do not compile"
cp "${unit_programs[@]/#/$build/tests/}" "$tree/build/release/tests/"

# A second of this machine is up to thirty there; the tests' deadlines of a minute
# become five. More would only hold up a run in which something hangs.
status=0
for init in "${inits[@]}"; do
    began=$SECONDS
    # As a person would start it there: each server a unit that owns its group.
    start_with= battery= files=()
    [ "$init" != "${inits[-1]}" ] || battery=$attacks
    [ "$init" != direct ] || files=("${depends[@]}")
    [ "$init" = direct ] || start_with="systemd-run --scope --quiet --collect --property=Delegate=yes --"
    tests/vm/run-in-vm.sh --init "$init" --timeout 7200 --memory "$memory" --log "$results/console-$init.log" --out "$results/$init" \
        --tree "$tree:$ROOT" --cached-tree "$runtime" --cached-tree "$(dirname "$(dirname "$python")")" \
        --env HOLDCELL_RUNTIME="$runtime" --env HOLDCELL_BIN="$build/bin/holdcell" --env HOLDCELL_GUEST="$init" \
        --env HOLDCELL_SLOW=5 --env HOLDCELL_TIER=full --env HOLDCELL_START_WITH="$start_with" --env UNITS="${units:+${unit_programs[*]}}" --env ATTACKS="$battery" \
        --env PYTHON="$python" --env PYTHONDONTWRITEBYTECODE=1 -- tests/vm/inside.sh "$@" "${files[@]}" &
    guest=$!
    wait "$guest"
    code=$?
    guest=
    [ $code = 0 ] || status=1
    say "guest with --init $init: status $code, $((SECONDS - began)) s"
    units=
done
exit $status
