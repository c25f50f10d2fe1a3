# what: hostile cells against a session's walls: the whole battery; and that it sees when a process of the server dies or grows
# tier: quick
# timeout: 1500
# beside: quick
. "$(dirname "$0")/lib.sh"

python=$(test_python) || broken "no environment for the tests"
names=() pids=()

# lane NAME WORDS... - a server of its own and attacks on it, in the background
lane() {
    local name=$1
    shift
    "$python" tests/attacks/battery.py --bin "$HOLDCELL_BIN" --log "$LOGS/server-$name.log" --json "$LOGS/$name.json" \
        --known tests/attacks/known.txt "$@" >"$LOGS/$name.log" 2>&1 &
    names+=("$name") pids+=($!)
}

# next - waits for the lane that has been begun first
p=0 f=0 s=0
next() {
    local name=${names[0]} good bad other status=0 untold
    wait "${pids[0]}" || status=$?
    names=("${names[@]:1}") pids=("${pids[@]:1}")
    cat "$LOGS/$name.log"
    # What cannot be told is never held: skipped where known.txt says why, failed elsewhere.
    read -r good bad other <<<"$(verdicts "$LOGS/$name.json" HELD BROKEN)"
    untold=$(grep -c 'does not say why$' "$LOGS/$name.log")
    bad=$((bad + untold)) other=$((other - untold))
    if [ $status != 0 ] && [ $bad = 0 ]; then bad=1; fi
    p=$((p + good)) f=$((f + bad)) s=$((s + other))
}
trap 'kill "${pids[@]}" 2>/dev/null; wait; cat "$LOGS"/attacks-*.log; exit 143' TERM INT

# Attacks wait more than they work. Those that take all they can get have a server of their own.
lane attacks-resources --only RS
lane attacks-walls --but RS,TM03,TM05
# Deadlines would end other attacks before they have shown anything.
next
lane attacks-deadlines --only TM03,TM05 --cell-timeout 2 --stdin-timeout 2 \
    --server=--cell-timeout --server=2 --server=--stdin-timeout --server=2
next
next

# The battery's own proof: a gateway, launcher or supervisor that dies in a case makes it BROKEN, and one that grows is seen.
"$python" tests/attacks/battery.py --bin "$HOLDCELL_BIN" --log "$LOGS/server-control.log" --json "$LOGS/attacks-control.json" \
    --cases tests/attacks/control/cases
while read -r id verdict; do
    echo "control $id: $verdict"
    case $verdict in right) p=$((p + 1)) ;; *) f=$((f + 1)) ;; esac
done < <(/usr/bin/python3 tests/attacks/control/verdicts.py "$LOGS/attacks-control.json")
counts "$p" "$f" "$s"
