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

# The quick tier waits more than it works: every second file runs beside the others. The full tier fills memory and
# disks, so there the files come one after the other.
lanes=2
! full_tier || lanes=1
python=$(test_python) || broken "no environment for the tests"
mapfile -t files < <(ls tests/blackbox/test_*.py | grep -v -e _guest.py -e _systemd.py)
logs=() reports=() pids=() status=0
for ((lane = 0; lane < lanes; lane++)); do
    mine=()
    for ((i = lane; i < ${#files[@]}; i += lanes)); do mine+=("${files[i]}"); done
    logs+=("$LOGS/blackbox-$lane.log") reports+=("$SUITE_TMP/junit-$lane.xml")
    "$python" -m pytest -p no:cacheprovider -ra --tb=short --durations=40 --junit-xml="${reports[lane]}" \
        -c tests/blackbox/pytest.ini "${mine[@]}" >"${logs[lane]}" 2>&1 &
    pids+=($!)
done
trap 'kill "${pids[@]}"; cat "${logs[@]}"; exit 143' TERM INT
for pid in "${pids[@]}"; do wait "$pid" || status=1; done
cat "${logs[@]}"
junit_counts $status "${reports[@]}"
