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
# Its states lie in a folder of our own: others on this machine may use quickstart.sh as well, and come and go meanwhile.
export TMPDIR=$SUITE_TMP/tmp
mkdir "$TMPDIR"
servers() { pgrep -cf "state-dir $TMPDIR/holdcell-quickstart"; }
states() { find "$TMPDIR" -maxdepth 1 -name 'holdcell-quickstart.*' | wc -l; }
seen() { # seen PID - a server and a state of it, before the process ends
    while kill -0 "$1" 2>/dev/null; do
        [ "$(servers)" = 0 ] || [ "$(states)" = 0 ] || return 0
        sleep 0.1
    done
    return 1
}

said=$SUITE_TMP/said
quickstart() { ./quickstart.sh | tee "$said"; [ "${PIPESTATUS[0]}" = 0 ]; }
clients=$(make_venv "$HOLDCELL_ROOT/tests/requirements/browser.txt") || broken "no environment for JupyterLab"
clients=$(dirname "$(dirname "$clients")")
rm -rf out
# Somebody else's server, which comes meanwhile.
bash -c 'exec -a "holdcell serve --state-dir /tmp/holdcell-quickstart.other/server" sleep 900' &
other=$!
trap 'kill $other' EXIT
check "it ends well" quickstart
check "an executed notebook is there, with all that it must hold" /usr/bin/python3 tests/tools/look_at_executed.py out/weather.ipynb
check "a page with its pictures is there" test "$(grep -o 'data:image/png' out/weather.html | wc -l)" -ge 2
check "its pictures are there" /usr/bin/python3 tests/tools/look_at_executed.py out/weather-1.png out/weather-2.png
check "the lines with which it ends connect JupyterLab and VS Code" \
    /usr/bin/python3 tests/tools/connect_lines.py "$said" --clients "$clients" --log "$HOLDCELL_LOGS"
check "no server of it runs on" test "$(servers)" = 0
check "its state is gone" test "$(states)" = 0
# Again: all is made by now, and what the first run left in out/ proves nothing.
rm -rf out
began=$SECONDS
./quickstart.sh >"$SUITE_TMP/again" &
again=$!
check "a second run has a server and its state, and they are counted here" seen $again
check "a second run ends well" wait $again
cat "$SUITE_TMP/again"
check "it takes less than a minute" test $((SECONDS - began)) -lt 60
check "it makes the notebook, the page and the pictures" test -s out/weather.ipynb -a -s out/weather.html -a -s out/weather-2.png
check "it prints where they are, and what was found" prints_results "$SUITE_TMP/again"

notebook() { # notebook NAME CODE - of one cell, as JupyterLab saves it
    /usr/bin/python3 - "$@" >"$SUITE_TMP/$1.ipynb" <<'PYTHON'
import json, sys
cell = {"id": "a", "cell_type": "code", "metadata": {}, "source": sys.argv[2], "outputs": [], "execution_count": None}
print(json.dumps({"nbformat": 4, "nbformat_minor": 5, "cells": [cell], "metadata": {
    "kernelspec": {"name": "mine", "display_name": "Mine", "language": "python"},
    "language_info": {"name": "python", "pygments_lexer": "ipython3"}}}))
PYTHON
}
errors=$SUITE_TMP/errors
tried() { # tried NAME STATUS - quickstart.sh on that notebook ends so; what it says on stderr is in $errors
    ./quickstart.sh "$SUITE_TMP/$1.ipynb" >"$SUITE_TMP/tried" 2>"$errors"
    local status=$?
    cat "$errors"
    [ $status = "$2" ]
}
error_alone() { [ "$(grep . "$errors")" = "Error: $SUITE_TMP/$1.ipynb, cell 1: $2" ]; }
notebook saved 'print(6 * 7)'
check "a notebook that JupyterLab saved, with a kernel of its machine, runs" tried saved 0
check "without a warning" test ! -s "$errors"
notebook raises 'open("nowhere.csv")'
check "a cell that fails ends it with 1" tried raises 1
check "its error is all that is said: the server has no part in it" \
    error_alone raises "FileNotFoundError: [Errno 2] No such file or directory: 'nowhere.csv'"
notebook dies 'import os; os._exit(1)'
check "a kernel that dies ends it with 1" tried dies 1
check "what it died of is all that is said" error_alone dies "the kernel died: exited with code 1"
# A server that starts no kernel: its log is what tells why.
refused() { HOLDCELL_FORCE_KERNEL=not-there tried saved 1; }
check "a server that does not run the notebook ends it with 1" refused
check "then its log is shown, and where it is" grep -q "the server's log: .*build/logs/server.log" "$errors"
check "with lines of it" grep -q '^    ts=' "$errors"
check "a notebook that does not exist is refused" sh -c '! ./quickstart.sh nowhere.ipynb'
counts $passed $failed 0
