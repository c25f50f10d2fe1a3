#!/bin/bash
# build.sh [--prefix DIR] [--log FILE]
#
# Builds what runs inside a sandbox: a Python environment with the locked packages,
# the kernel module and its kernelspec. It stands at DIR/runtime/<key> (DIR is
# /opt/holdcell), where <key> changes with everything that goes into it, so that
# running sessions keep theirs. Safe to repeat, also by several at once: a finished
# one is only named again. The last line printed is its path.
#
# The environment is made under its final name, since its scripts hold that path;
# the file .complete tells a finished one from the rest of an interrupted build.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=/usr/bin/python3
prefix=/opt/holdcell
log=

while [ $# -gt 0 ]; do
    case $1 in
    --prefix) prefix=${2:?--prefix needs a directory}; shift 2 ;;
    --log) log=${2:?--log needs a file}; shift 2 ;;
    -h | --help) sed -n '2,11p' "${BASH_SOURCE[0]}" | sed 's/^# \{0,1\}//'; exit 0 ;;
    *) echo "build.sh: unknown word '$1'" >&2; exit 2 ;;
    esac
done
[ -x "$python" ] || { echo "build.sh: $python is missing: install the package python3" >&2; exit 1; }

# The key: packages, our files, this script, the interpreter they are built for.
runtime_key() {
    {
        cd "$here"
        find requirements.txt build.sh holdcell_kernel kernelspec -type f ! -name '*.pyc' -print0 |
            LC_ALL=C sort -z | xargs -0 sha256sum
        "$python" -c 'import sys, platform; print(sys.version_info[:2], platform.machine())'
    } | sha256sum | cut -c1-12
}

key=$(runtime_key)
dir=$prefix/runtime/$key
umask 022
mkdir -p "$prefix/runtime"
: "${log:=$prefix/runtime/.$key.log}"

finish() { echo "$dir"; exit 0; }
[ ! -e "$dir/.complete" ] || finish

exec 9>"$prefix/runtime/.$key.lock"
if ! flock -n 9; then
    echo "  runtime: another build of $key is under way, waiting for it"
    flock 9
fi
[ ! -e "$dir/.complete" ] || finish

step() { printf '  runtime: %s\n' "$*"; }
failed() {
    echo "build.sh: the build of the runtime failed; the end of $log:" >&2
    tail -n 15 "$log" >&2
    exit 1
}
trap failed ERR
: >"$log"

step "new environment in $dir"
rm -rf "$dir"
"$python" -m venv "$dir" >>"$log" 2>&1

step "installing $(grep -c '^[A-Za-z0-9]' "$here/requirements.txt") locked packages (log: $log)"
# --no-deps: the lock holds everything; wheels only: no code runs at build time
PYTHONDONTWRITEBYTECODE=1 "$dir/bin/python3" -m pip install --disable-pip-version-check --no-input \
    --no-compile --no-deps --only-binary :all: --require-hashes -r "$here/requirements.txt" >>"$log" 2>&1
"$dir/bin/python3" -m pip check >>"$log" 2>&1

step "kernel module and kernelspec"
site=$("$dir/bin/python3" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
rm -rf "$dir/share/jupyter/kernels/python3"
mkdir -p "$site/holdcell_kernel" "$dir/share/jupyter/kernels/python3"
cp "$here"/holdcell_kernel/*.py "$site/holdcell_kernel/"
cp "$here"/kernelspec/* "$dir/share/jupyter/kernels/python3/"

# pip says in a session why it cannot download, and at once: no index will answer.
printf '[global]\nretries = 0\ndisable-pip-version-check = true\n' >"$dir/pip.conf"
for script in "$dir"/bin/pip*; do
    printf '#!%s/bin/python3 -P\nimport sys\nfrom holdcell_kernel.packaging import main\n\nsys.exit(main())\n' \
        "$dir" >"$script"
done

step "bytecode"
# Not checked against the sources' times: nobody can change those, and an image
# that was copied may have other times. The test folders of packages stay as they are.
"$dir/bin/python3" -m compileall -q -j 2 --invalidation-mode unchecked-hash \
    -x '[\\/](tests?|testing/data)[\\/]' "$dir/lib" >>"$log" 2>&1 ||
    step "some files of the packages do not compile (they are in the log)"

step "font list of matplotlib"
work=$(mktemp -d)
MPLCONFIGDIR=$work MPLBACKEND=agg PYTHONDONTWRITEBYTECODE=1 "$dir/bin/python3" -c '
import matplotlib.pyplot as plt
plt.plot([1, 2]); plt.title("fonts"); plt.savefig("/dev/null", format="png")' >>"$log" 2>&1
mkdir -p "$dir/share/matplotlib"
cp "$work"/fontlist-*.json "$dir/share/matplotlib/"
rm -rf "$work"

step "first start of the kernel module"
PYTHONDONTWRITEBYTECODE=1 "$dir/bin/python3" -P -c 'import holdcell_kernel.app, pandas, pyarrow' >>"$log" 2>&1

[ "$(id -u)" != 0 ] || chown -R 0:0 "$dir"
chmod -R u+rwX,go+rX,go-w "$dir"
touch "$dir/.complete"
sync -f "$dir" 2>/dev/null || true
step "ready, $(du -sh "$dir" | cut -f1)"
finish
