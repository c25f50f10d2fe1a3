#!/bin/bash
# scripts/setup.sh [--tests]
#
# Installs the packages that are missing, builds the release and makes the Python runtime of
# sessions; with --tests also what the tests need. Everything is skipped when it is there
# already. Works as root or with sudo. The runtime and the Python environments go below
# HOLDCELL_PREFIX (/opt/holdcell).

# quickstart.sh takes the functions setup_* out of it, and passes no words. Nothing happens before they are understood.
if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    set -u
    case ${1---} in
    -h | --help) sed -n '2,7p' "$0" | sed 's/^# \{0,1\}//'; exit 0 ;;
    -- | --tests) ;;
    *) echo "setup.sh: unknown word '$1' (see --help)" >&2; exit 2 ;;
    esac
    [ $# -le 1 ] || { echo "setup.sh: unexpected word '$2' (see --help)" >&2; exit 2; }
fi

# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

BUILD_PACKAGES="ca-certificates git gcc libc6-dev cmake ninja-build pkg-config python3 python3-venv
    libuv1-dev libzmq3-dev libczmq-dev libjansson-dev libssl-dev libseccomp-dev libcmocka-dev e2fsprogs"
# libclang-rt: the sanitizers and libFuzzer, which clang alone does not bring.
TEST_PACKAGES="openssl curl clang libclang-rt-dev clang-format llvm nodejs npm chromium btrfs-progs xfsprogs"

missing_packages() {
    local name
    for name in "$@"; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || echo "$name"
    done
}

# A program that is in PATH needs no package (node from elsewhere, say).
missing_test_packages() {
    local name
    for name in $TEST_PACKAGES; do
        case $name in nodejs) command -v node >/dev/null && continue ;; npm) command -v npm >/dev/null && continue ;; esac
        missing_packages "$name"
    done
}

setup_packages() { # setup_packages [--tests]
    local wanted
    command -v dpkg-query >/dev/null || { say "      not a Debian system: packages are left to you"; return 0; }
    # shellcheck disable=SC2086
    wanted=$(missing_packages $BUILD_PACKAGES)
    [ "${1:-}" != --tests ] || wanted="$wanted $(missing_test_packages)"
    wanted=$(echo $wanted)
    [ -n "$wanted" ] || { say "      all packages are there"; return 0; }
    say "      installing: $wanted"
    # shellcheck disable=SC2086
    run_logged apt as_root sh -c 'export DEBIAN_FRONTEND=noninteractive
        apt-get -o DPkg::Lock::Timeout=300 update &&
        apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@"' sh $wanted
}

setup_build() { # setup_build [--tests]: with it what tests run beside the programs, and a compiler's new warning is an error
    local programs="holdcell holdcell-launcher holdcell-init" program
    # shellcheck disable=SC2046
    run_logged configure cmake -S "$ROOT" --preset release $([ "${1:-}" != --tests ] || echo -DHOLDCELL_WERROR=ON) || return 1
    # shellcheck disable=SC2046,SC2086
    run_logged build cmake --build "$ROOT/build/release" -j "$(nproc)" \
        --target $programs $([ "${1:-}" != --tests ] || echo test_programs) || return 1
    for program in $programs; do
        [ -x "$ROOT/build/release/bin/$program" ] || fail "the build made no build/release/bin/$program"
    done
    say "      build/release/bin: holdcell holdcell-launcher holdcell-init"
}

# The runtime, and a symlink to it beside each build.
setup_runtime() {
    local out=$LOGS/runtime.out as='' dir preset
    [ "$(id -u)" = 0 ] || as=as_root
    $as "$ROOT/runtime/build.sh" --prefix "$CACHE" | tee "$out" | sed -n 's/^  runtime: /      /p'
    [ "${PIPESTATUS[0]}" = 0 ] || return 1
    dir=$(tail -n 1 "$out")
    [ -e "$dir/.complete" ] || return 1
    for preset in release asan dev; do
        [ "$preset" = release ] || [ -d "$ROOT/build/$preset" ] || continue
        mkdir -p "$ROOT/build/$preset"
        ln -sfn "$dir" "$ROOT/build/$preset/runtime"
    done
    say "      $dir"
}

setup_all() {
    setup_packages "$@" && setup_build "$@" && setup_runtime
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    setup_all "$@" || exit 1
fi
