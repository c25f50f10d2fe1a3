# what: the Python runtime and its kernel module, without a sandbox
# tier: quick
# timeout: 600
. "$(dirname "$0")/lib.sh"

pytest_suite tests/runtime
