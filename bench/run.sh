#!/bin/bash
# bench/run.sh NAME [OPTIONS...] - sets up what the tests need and runs bench/NAME.py (bench/README.md).
set -eu

cd "$(dirname "${BASH_SOURCE[0]}")/.."
name=${1:?which one? there are: $(cd bench && ls *.py | sed 's/\.py$//' | xargs)}
shift
[ -e "bench/$name.py" ] || { echo "run.sh: no bench/$name.py" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo "run.sh: it starts sandboxes: run it as root (sudo bench/run.sh $name)" >&2; exit 2; }
# shellcheck source=scripts/common.sh
. scripts/common.sh
bash scripts/setup.sh --tests >&2
exec "$(make_venv tests/requirements/tests.txt)" "bench/$name.py" "$@"
