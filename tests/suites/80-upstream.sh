# what: tests of kernel_gateway, jupyter_server, enterprise_gateway and others, aimed at this server
# tier: full
# timeout: 2400
# beside: others
. "$(dirname "$0")/lib.sh"

# upstream_sources PYTHON - fetches and unpacks the releases once; prints the folder
upstream_sources() {
    local list=$HOLDCELL_ROOT/tests/upstream/sources.txt base=$CACHE/upstream key dir
    key=$(sha256sum <"$list" | cut -c1-12)
    mkdir -p "$base" 2>/dev/null || true
    [ -w "$base" ] || base=$HOLDCELL_ROOT/build/upstream
    dir=$base/$key
    mkdir -p "$base"
    (
        flock 9
        [ ! -e "$dir/.complete" ] || exit 0
        rm -rf "$dir"
        mkdir -p "$dir" &&
            "$1" -m pip download --disable-pip-version-check --no-input --no-deps --no-binary :all: \
                --no-build-isolation --require-hashes -r "$list" -d "$dir" &&
            for archive in "$dir"/*.tar.gz; do tar -xzf "$archive" -C "$dir" --no-same-owner || exit 1; done &&
            touch "$dir/.complete"
    ) 9>"$base/.$key.lock" >&2 </dev/null || return 1
    echo "$dir"
}

python=$(make_venv "$HOLDCELL_ROOT/tests/upstream/requirements.txt") || broken "no environment for the upstream tests"
sources=$(upstream_sources "$python") || broken "the upstream releases could not be fetched"
exec "$python" tests/upstream/run.py --sources "$sources" --work "$SUITE_TMP/work"
