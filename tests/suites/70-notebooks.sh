# what: the example notebooks through the real server, with two client libraries
# tier: quick
# timeout: 900
. "$(dirname "$0")/lib.sh"

pytest_suite tests/notebooks
