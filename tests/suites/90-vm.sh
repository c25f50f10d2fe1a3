# what: the server in a stock Debian 12 guest (Linux 6.1, cgroup v2 alone), without and with systemd
# tier: full
# timeout: 4200
# beside: others
. "$(dirname "$0")/lib.sh"

tests/vm.sh --results "$SUITE_TMP/results"
status=$?
for init in direct systemd; do
    [ -s "$SUITE_TMP/results/$init/pytest.xml" ] || tail -n 40 "$SUITE_TMP/results/console-$init.log" 2>/dev/null
done
junit_counts $status "$SUITE_TMP"/results/{direct,systemd}/pytest.xml $(ls "$SUITE_TMP"/results/*/test_*.xml 2>/dev/null)
