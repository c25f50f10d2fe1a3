# what: the sandbox's unit tests in a Debian guest: pure cgroup v2, Linux 6.1, delegated by systemd and not
# tier: full
# timeout: 19000
# beside: all
. "$(dirname "$0")/lib.sh"

# Real sandboxes alone: what needs no kernel behaves the same everywhere.
programs="test_drop test_landlock test_seccomp test_sandbox test_walls test_room test_limits test_homes test_data test_workspaces"

command -v qemu-system-x86_64 >/dev/null || [ "$(id -u)" = 0 ] || {
    echo "needs qemu-system-x86_64, or root to install it"
    counts 0 0 1
    exit
}
tests=$HOLDCELL_ROOT/build/release/tests
cmake --preset release && cmake --build --preset release -j "$JOBS" || broken "the release build failed"
tree=$SUITE_TMP/guest
mkdir -p "$tree" || broken "no room"
for name in $programs; do cp "$tests/$name" "$tree/" || broken "$name was not built"; done
# The guest has no cmocka, and a sandbox no library but those of the guest's /usr.
cp "$(ldd "$tests/test_sandbox" | sed -n 's/.*libcmocka[^ ]* => \([^ ]*\).*/\1/p')" "$tree/" || broken "no libcmocka"
cat >"$tree/run.sh" <<SCRIPT
cp $tree/libcmocka* /usr/lib/x86_64-linux-gnu/ && ldconfig
modprobe -a loop ext4 # homes and workspaces on disk; udev is not there to help in the quick init
[ "\$1" = one ] && sysctl -w kernel.unprivileged_userns_clone=0
for name in $programs; do $tree/\$name 2>&1 || echo "ended with status \$?: \$name"; done
SCRIPT

p=0 f=0 s=0
guest() { # guest INIT LEVELS
    local log=$SUITE_TMP/$1-$2.log status bad
    echo "== --init $1, $2"
    tests/vm/run-in-vm.sh --tree "$tree" --init "$1" --timeout 9000 -- sh "$tree/run.sh" "$2" >"$log" 2>&1
    status=$?
    cat "$log"
    p=$((p + $(grep -c '^\[       OK \]' "$log")))
    # Both are named twice, where it happened and in the summary; a program that died names nothing.
    s=$((s + $(grep -c '^\[  SKIPPED \] [a-z]' "$log") / 2))
    bad=$(($(grep -c -e '^\[  FAILED  \] [a-z_]*$' "$log") / 2))
    [ $status = 0 ] && { [ $bad -gt 0 ] || ! grep -q '^ended with' "$log"; } || bad=$((bad + 1))
    f=$((f + bad))
}

guest systemd two
guest direct one
counts $p $f $s
