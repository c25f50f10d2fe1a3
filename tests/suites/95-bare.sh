# what: quickstart.sh from a fresh clone on a bare Debian 12 (by mmdebstrap, no container), as root and as a user with sudo
# tier: full
# timeout: 2400
. "$(dirname "$0")/lib.sh"

command -v mmdebstrap >/dev/null || apt-get install -y --no-install-recommends mmdebstrap || broken "no mmdebstrap"
root=$SUITE_TMP/root
mmdebstrap --variant=minbase bookworm "$root" || broken "no bare Debian"

# How this machine reaches its mirrors and package index holds there too.
cp /etc/apt/apt.conf.d/* "$root/etc/apt/apt.conf.d/" 2>/dev/null
cp /etc/pip.conf "$root/etc/" 2>/dev/null
mkdir -p "$root/usr/local/share/ca-certificates" "$root/etc/ssl/certs"
cp -r /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/" 2>/dev/null
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/" 2>/dev/null
names=(HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin)
while IFS= read -r name; do names+=("$name=${!name}"); done < <(compgen -e | grep -E '^(https?_proxy|no_proxy|PIP_[A-Z_]*|SSL_CERT_FILE|REQUESTS_CA_BUNDLE)$')

mkdir -p "$root/root/holdcell"
git archive HEAD | tar -x -C "$root/root/holdcell" || broken "no clone"

# Not chroot: no user namespace can be made there. A mount namespace and pivot_root.
inside() {
    # shellcheck disable=SC2016
    unshare --mount --propagation private sh -euc '
        root=$1; shift
        mount --bind "$root" "$root"
        for d in proc sys dev; do mount --rbind /$d "$root/$d"; done
        mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"; mount -t tmpfs tmpfs "$root/run"
        # whoever shares the cgroups of a host shares its table of instances
        mkdir -p /run/holdcell "$root/run/holdcell"; mount --bind /run/holdcell "$root/run/holdcell"
        cp /etc/resolv.conf /etc/hosts "$root/etc/" 2>/dev/null || true
        cd "$root"; mkdir -p old; pivot_root . old; cd /; umount -l /old
        exec "$@"' sh "$root" env -i "${names[@]}" "$@"
}

# inside(); a run of quickstart.sh is held to what it prints too, and the second one to a minute.
enter() {
    local began=$SECONDS
    case $* in */quickstart.sh) ;; *) inside "$@"; return ;; esac
    inside "$@" | tee "$SUITE_TMP/printed"
    [ "${PIPESTATUS[0]}" = 0 ] && prints_results "$SUITE_TMP/printed" || return 1
    [ "$run" = first ] || [ $((SECONDS - began)) -lt 60 ] || { echo "the second run took a minute or more" >&2; return 1; }
}

passed=0 failed=0
check() { # check TEXT COMMAND...
    local text=$1
    shift
    if "$@"; then passed=$((passed + 1)) && echo "ok: $text"; else failed=$((failed + 1)) && echo "FAILED: $text"; fi
}
quickstart() {
    enter /root/holdcell/quickstart.sh | tee "$root/root/said"
    [ "${PIPESTATUS[0]}" = 0 ]
}
for run in first second; do
    began=$SECONDS
    check "$run run: it ends well" quickstart
    echo "== $run run: $((SECONDS - began)) s"
    check "$run run: the executed notebook holds all that it must" \
        /usr/bin/python3 tests/tools/look_at_executed.py "$root/root/holdcell/out/weather.ipynb"
    check "$run run: a page is there" test -s "$root/root/holdcell/out/weather.html"
    rm -rf "$root/root/holdcell/out"
done
check "the lines with which it ends connect JupyterLab, which they install, and VS Code" \
    enter sh -c 'cd /root/holdcell && exec python3 tests/tools/connect_lines.py /root/said --log /root/logs'
cp "$root"/root/logs/* "$HOLDCELL_LOGS/" 2>/dev/null

# Then as an ordinary user who may use sudo: with a clone of his own, and a runtime that is yet to be made.
newcomer() {
    local kept=("${names[@]:2}") clone=$root/home/newcomer/holdcell
    inside sh -c 'apt-get install -y --no-install-recommends sudo && useradd --create-home --shell /bin/bash newcomer' || return 1
    printf 'Defaults env_keep += "TERM %s"\nnewcomer ALL=(ALL) NOPASSWD: ALL\n' "${kept[*]%%=*}" >"$root/etc/sudoers.d/newcomer"
    chmod 440 "$root/etc/sudoers.d/newcomer"
    rm -rf "$root/opt/holdcell"
    mkdir "$clone" && git archive HEAD | tar -x -C "$clone" && inside chown -R newcomer: /home/newcomer
}
run=first
check "a user with sudo: there is one" newcomer
check "a user with sudo: it ends well" enter su newcomer -c /home/newcomer/holdcell/quickstart.sh
check "a user with sudo: the executed notebook holds all that it must" \
    /usr/bin/python3 tests/tools/look_at_executed.py "$root/home/newcomer/holdcell/out/weather.ipynb"
counts $passed $failed 0
