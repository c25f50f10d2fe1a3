#!/bin/bash
# lock.sh [NAME.in ...] - turns requirement files into hash-locked ones beside them
# (default: runtime/requirements.in). Needs a package index. Run it with the
# interpreter that will install the result: /usr/bin/python3 of Debian 12.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ $# -gt 0 ] || set -- "$here/requirements.in"

tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
/usr/bin/python3 -m venv "$tools"
"$tools/bin/python3" -m pip install -q pip-tools
for input in "$@"; do
    "$tools/bin/pip-compile" -q --generate-hashes --allow-unsafe --strip-extras --no-header \
        --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options \
        --output-file "${input%.in}.txt" "$input"
    # "via" lines name the folder the lock was made in
    sed -i "s|$(cd "$(dirname "$input")" && pwd)/||" "${input%.in}.txt"
    echo "${input%.in}.txt: $(grep -c '^[A-Za-z0-9].*==' "${input%.in}.txt") packages"
done
