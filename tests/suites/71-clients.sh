# what: unmodified clients: @jupyterlab/services in Node, jupyter_kernel_client's own tests, jupyter_server_client, nbclient, papermill
# tier: quick
# timeout: 1800
# beside: others
# full adds: jupyter_kernel_client's own tests, both framings and both notebook runners for everything
. "$(dirname "$0")/lib.sh"

python=$(make_venv "$HOLDCELL_ROOT/tests/requirements/browser.txt") || broken "no environment for the clients"
HCONF_NODE_MODULES=$(node_modules) || broken "no packages for the JavaScript clients"
export HCONF_NODE_MODULES
"$python" -m pytest -p no:cacheprovider -ra --tb=short --durations=15 --junit-xml="$SUITE_TMP/junit.xml" tests/clients
junit_counts $? "$SUITE_TMP/junit.xml"
