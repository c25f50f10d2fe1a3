# what: the example notebooks, and the Python of the documents, through the real server
# tier: quick
# timeout: 1700
# beside: others
# full adds: both clients for every notebook and every mistake
. "$(dirname "$0")/lib.sh"

pytest_suite tests/notebooks
