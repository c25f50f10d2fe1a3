#!/bin/bash
# inside.sh PYTEST-ARGUMENTS... - what tests/vm.sh runs in the guest, in the root of the
# tree: the unit tests named in UNITS, then pytest. JUnit files go to VM_OUT.
status=0
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
cd tests/blackbox || exit 1
"$PYTHON" -m pytest -v --tb=short --durations=15 --junit-xml="$VM_OUT/pytest.xml" "$@" || status=1
exit $status
