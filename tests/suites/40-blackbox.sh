# what: the real server from outside: state, interrupts, deaths, walls, leaks, supervision
# tier: quick
# timeout: 900
# full adds: the long runs of the same tests (marked full)
. "$(dirname "$0")/lib.sh"

pytest_suite tests/blackbox
