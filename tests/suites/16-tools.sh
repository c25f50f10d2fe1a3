# what: what the tests judge by (counts of unit tests, looks at notebooks) sees what it must: each can fail
# tier: quick
# timeout: 300
# beside: others
. "$(dirname "$0")/lib.sh"

pytest_suite tests/selftest
