# what: the real server from outside: state, interrupts, deaths, walls, leaks, supervision
# tier: quick
# timeout: 5400
# beside: quick
# full adds: the long runs of the same tests (marked full), nginx in front, kernels that are not the runtime's
. "$(dirname "$0")/lib.sh"

if full_tier && ! command -v nginx >/dev/null; then
    apt-get install -y --no-install-recommends nginx-light >"$SUITE_TMP/nginx.log" 2>&1 ||
        broken "no nginx: see $SUITE_TMP/nginx.log"
    systemctl disable --now nginx >/dev/null 2>&1 || true     # the program alone is wanted
fi

# The tests wait more than they work: two lanes of files run beside each other, but for those that fill the host's
# memory until sessions are refused, and compare the times of neighbours. Servers that run only when nobody else wants
# the processors are alone too: beside others they would wait for as long as those work.
alone=(tests/blackbox/test_admission.py tests/blackbox/test_exhaustion.py)
leftovers="test_inherited.py::test_a_server_that_is_to_take_less_of_the_processors_lives_and_so_do_its_kernels"
python=$(test_python) || broken "no environment for the tests"
mapfile -t files < <(ls tests/blackbox/test_*.py | grep -v -e _guest.py -e _systemd.py | grep -v -x -F "${alone[@]/#/-e}")
lanes=2 portions=12
logs=() reports=() status=0
begin() { # begin FILES... - a pytest of its own for them, in the background
    local log=$LOGS/blackbox-${#logs[@]}.log report=$LOGS/blackbox-${#logs[@]}.xml
    rm -f "$report"
    "$python" -m pytest -p no:cacheprovider -ra --tb=short --durations=40 --junit-xml="$report" \
        -c tests/blackbox/pytest.ini "$@" >"$log" 2>&1 &
    logs+=("$log") reports+=("$report")
}
trap 'kill $(jobs -pr) 2>/dev/null; cat "${logs[@]}"; exit 143' TERM INT
# Whichever lane is free takes the next portion, so that both end together.
for ((portion = 0; portion < portions; portion++)); do
    mine=()
    for ((i = portion; i < ${#files[@]}; i += portions)); do mine+=("${files[i]}"); done
    if [ $portion -ge $lanes ]; then wait -n || status=1; fi
    begin --deselect "$leftovers" "${mine[@]}"
done
for ((i = 0; i < lanes; i++)); do wait -n || status=1; done
begin "${alone[@]}" "tests/blackbox/$leftovers"
wait -n || status=1
cat "${logs[@]}"
junit_counts $status "${reports[@]}"
