# what: JupyterLab in Chromium: launcher, cells, charts, input, interrupt, restart, widgets, a killed gateway
# tier: quick
# timeout: 1500
# beside: others
# full adds: the page that speaks to holdcell without JupyterLab's proxy, long outputs
. "$(dirname "$0")/lib.sh"

command -v chromium >/dev/null || broken "no Chromium: apt-get install chromium"
python=$(make_venv "$HOLDCELL_ROOT/tests/requirements/browser.txt") || broken "no environment for JupyterLab"
"$python" -m pytest -p no:cacheprovider -ra --tb=short --durations=15 --junit-xml="$SUITE_TMP/junit.xml" tests/browser
junit_counts $? "$SUITE_TMP/junit.xml"
