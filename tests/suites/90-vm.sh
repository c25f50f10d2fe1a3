# what: the server in a stock Debian 12 guest (Linux 6.1, cgroup v2 alone), without and with systemd
# tier: full
# timeout: 15000
# beside: all
. "$(dirname "$0")/lib.sh"

tests/vm.sh --results "$SUITE_TMP/results"
status=$?
attacks=$SUITE_TMP/results/systemd/attacks.json
cp "$attacks" "$SUITE_TMP/results/systemd/attacks-server.log" "$LOGS/" 2>/dev/null
for init in direct systemd; do
    [ -s "$SUITE_TMP/results/$init/pytest.xml" ] || tail -n 40 "$SUITE_TMP/results/console-$init.log" 2>/dev/null
done
# vm.sh failed without a failed test or attack: told by junit_counts, which knows of one alone
read -r held bad other <<<"$(verdicts "$attacks" HELD BROKEN)"
[ "$bad" = 0 ] || status=0
told=$(junit_counts --skips tests/vm/skips.txt $status "$SUITE_TMP"/results/{direct,systemd}/pytest.xml $(ls "$SUITE_TMP"/results/*/test_*.xml 2>/dev/null))
line=${told##*$'\n'}
echo "${told%"$line"}"
[[ $line =~ ^passed=([0-9]+)\ failed=([0-9]+)\ skipped=([0-9]+)$ ]] || broken "no counts: $line"
counts $((BASH_REMATCH[1] + held)) $((BASH_REMATCH[2] + bad)) $((BASH_REMATCH[3] + other))
