# lib.sh - helpers for the scripts in tests/suites (sourced; the contract: tests/run.sh).

set -u
. "$HOLDCELL_ROOT/scripts/common.sh"
LOGS=$HOLDCELL_LOGS

full_tier() { [ "$HOLDCELL_TIER" = full ]; }

# counts PASSED FAILED SKIPPED - the last line, and the exit status to end with
counts() {
    echo "passed=$1 failed=$2 skipped=$3"
    [ "$2" = 0 ]
}

# broken TEXT - the suite cannot run at all
broken() {
    echo "$*"
    echo "passed=0 failed=1 skipped=0"
    exit 1
}

# test_python - path of the interpreter with everything of tests/requirements/tests.txt
test_python() { make_venv "$HOLDCELL_ROOT/tests/requirements/tests.txt"; }

# pytest_suite ARGUMENTS... - runs pytest in that environment and ends the suite with
# its counts. Errors in fixtures count as failures.
pytest_suite() {
    local python status
    python=$(test_python) || broken "no environment for the tests"
    "$python" -m pytest -p no:cacheprovider -ra --tb=short --junit-xml="$SUITE_TMP/junit.xml" "$@"
    status=$?
    junit_counts $status "$SUITE_TMP/junit.xml"
    exit $?
}

# junit_counts STATUS FILE... - counts of JUnit files; a runner that failed without
# a failing case (a broken collection, say) is a failure of its own
junit_counts() {
    local status=$1
    shift
    /usr/bin/python3 - "$status" "$@" <<'PYTHON'
import sys, xml.etree.ElementTree as tree
passed = failed = skipped = 0
for path in sys.argv[2:]:
    try:
        suites = tree.parse(path).getroot().iter("testsuite")
    except (OSError, tree.ParseError):
        failed += 1
        continue
    for suite in suites:
        number = lambda name: int(suite.get(name) or 0)
        bad = number("failures") + number("errors")
        left_out = number("skipped") + number("disabled")
        failed += bad
        skipped += left_out
        passed += number("tests") - bad - left_out
if sys.argv[1] != "0" and not failed:
    failed = 1
print(f"passed={passed} failed={failed} skipped={skipped}")
sys.exit(failed != 0)
PYTHON
}
