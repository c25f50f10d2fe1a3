# what: the real server from outside: state, interrupts, deaths, walls, leaks, supervision
# tier: quick
# timeout: 3600
# beside: quick
# full adds: the long runs of the same tests (marked full), nginx in front
. "$(dirname "$0")/lib.sh"

if full_tier && ! command -v nginx >/dev/null; then
    apt-get install -y --no-install-recommends nginx-light >"$SUITE_TMP/nginx.log" 2>&1 ||
        broken "no nginx: see $SUITE_TMP/nginx.log"
    systemctl disable --now nginx >/dev/null 2>&1 || true     # the program alone is wanted
fi

# The tests wait more than they work: every second file runs beside the others, but for those that fill the host's
# memory until sessions are refused, and compare the times of neighbours.
python=$(test_python) || broken "no environment for the tests"
mapfile -t files < <(ls tests/blackbox/test_*.py | grep -v -e _guest.py -e _systemd.py -e _admission.py -e _exhaustion.py)
lanes=2
logs=() reports=() pids=() status=0
lane() { # lane FILES...
    local log=$LOGS/blackbox-${#logs[@]}.log report=$SUITE_TMP/junit-${#logs[@]}.xml
    "$python" -m pytest -p no:cacheprovider -ra --tb=short --durations=40 --junit-xml="$report" \
        -c tests/blackbox/pytest.ini "$@" >"$log" 2>&1 &
    logs+=("$log") reports+=("$report") pids+=($!)
}
trap 'kill "${pids[@]}" 2>/dev/null; cat "${logs[@]}"; exit 143' TERM INT
for ((first = 0; first < lanes; first++)); do
    mine=()
    for ((i = first; i < ${#files[@]}; i += lanes)); do mine+=("${files[i]}"); done
    lane "${mine[@]}"
done
for pid in "${pids[@]}"; do wait "$pid" || status=1; done
lane tests/blackbox/test_admission.py tests/blackbox/test_exhaustion.py
wait "${pids[-1]}" || status=1
cat "${logs[@]}"
junit_counts $status "${reports[@]}"
