# what: quickstart.sh from start to end, its results, the lines with which it ends, and that it leaves nothing running
# tier: quick
# timeout: 900
. "$(dirname "$0")/lib.sh"

passed=0 failed=0
check() { # check TEXT COMMAND...
    local text=$1
    shift
    if "$@"; then passed=$((passed + 1)) && echo "ok: $text"; else failed=$((failed + 1)) && echo "FAILED: $text"; fi
}
servers() { pgrep -f 'state-dir /tmp/holdcell-quickstart' | wc -l; }

states() { ls -d /tmp/holdcell-quickstart.* 2>/dev/null | wc -l; }

before=$(servers) states_before=$(states)
said=$SUITE_TMP/said
quickstart() { ./quickstart.sh | tee "$said"; [ "${PIPESTATUS[0]}" = 0 ]; }
clients=$(make_venv "$HOLDCELL_ROOT/tests/requirements/browser.txt") || broken "no environment for JupyterLab"
clients=$(dirname "$(dirname "$clients")")
rm -rf out
check "it ends well" quickstart
check "an executed notebook is there, with all that it must hold" /usr/bin/python3 tests/tools/look_at_executed.py out/weather.ipynb
check "a page with its pictures is there" test "$(grep -o 'data:image/png' out/weather.html | wc -l)" -ge 2
check "its pictures are there" /usr/bin/python3 tests/tools/look_at_executed.py out/weather-1.png out/weather-2.png
check "the lines with which it ends connect JupyterLab and VS Code" \
    /usr/bin/python3 tests/tools/connect_lines.py "$said" --clients "$clients" --log "$HOLDCELL_LOGS"
check "no server of it runs on" test "$(servers)" = "$before"
check "its state is gone" test "$(states)" = "$states_before"
# Again: all is made by now, and what the first run left in out/ proves nothing.
again() { ./quickstart.sh | tee "$SUITE_TMP/again"; [ "${PIPESTATUS[0]}" = 0 ]; }
rm -rf out
began=$SECONDS
check "a second run ends well" again
check "it takes less than a minute" test $((SECONDS - began)) -lt 60
check "it makes the notebook, the page and the pictures" test -s out/weather.ipynb -a -s out/weather.html -a -s out/weather-2.png
check "it prints where they are, and what was found" prints_results "$SUITE_TMP/again"
check "a notebook that does not exist is refused" sh -c '! ./quickstart.sh nowhere.ipynb'
counts $passed $failed 0
