# what: the real server from outside: state, interrupts, deaths, walls, leaks, supervision
# tier: quick
# timeout: 3600
# full adds: the long runs of the same tests (marked full), nginx in front
. "$(dirname "$0")/lib.sh"

if full_tier && ! command -v nginx >/dev/null; then
    apt-get install -y --no-install-recommends nginx-light >"$SUITE_TMP/nginx.log" 2>&1 ||
        broken "no nginx: see $SUITE_TMP/nginx.log"
    systemctl disable --now nginx >/dev/null 2>&1 || true     # the program alone is wanted
fi

pytest_suite --durations=40 tests/blackbox
