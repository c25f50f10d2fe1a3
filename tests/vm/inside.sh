#!/bin/bash
# inside.sh PYTEST-ARGUMENTS... - what tests/vm.sh runs in the guest, in the root of the
# tree: the unit tests named in UNITS, then pytest unless it has no arguments, then the
# attacks named in ATTACKS. JUnit files and attacks.json go to VM_OUT.
status=0
modprobe -a loop ext4 overlay # homes and workspaces on disk; udev is not there to help in the quick init
for name in $UNITS; do
    echo "== $name"
    CMOCKA_MESSAGE_OUTPUT=xml CMOCKA_XML_FILE=$VM_OUT/$name-%g.xml "build/release/tests/$name" || {
        echo "$name: status $?"
        status=1
        cat "$VM_OUT/$name"-*.xml
        # A program that died wrote no failure of its own.
        grep -qs '<failure\|<error' "$VM_OUT/$name"-*.xml ||
            echo "<testsuite name='$name' tests='1' failures='1'><testcase name='died'><failure/></testcase></testsuite>" >"$VM_OUT/$name-died.xml"
    }
done
if [ $# -gt 0 ]; then
    (cd tests/blackbox && "$PYTHON" -m pytest -v --tb=short --durations=15 --junit-xml="$VM_OUT/pytest.xml" "$@") || status=1
fi
if [ -n "$ATTACKS" ]; then
    # An address that is not loopback, for attacks that look for one.
    modprobe dummy && ip link add outside0 type dummy && ip addr add 10.77.0.1/24 dev outside0 && ip link set outside0 up
    "$PYTHON" tests/attacks/battery.py --bin "$HOLDCELL_BIN" --log "$VM_OUT/attacks-server.log" --json "$VM_OUT/attacks.json" \
        --only "$ATTACKS" --known tests/attacks/known.txt --helper "$PWD/build/attack-helper" --slow 15 || status=1
fi
exit $status
