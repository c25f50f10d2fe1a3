# what: hostile cells against a session's walls
# tier: quick
# timeout: 1500
# beside: quick
# full adds: resource exhaustion, protocol, more of time-outs, display and in-language attacks
. "$(dirname "$0")/lib.sh"

python=$(test_python) || broken "no environment for the tests"
limits=(--pids 128 --cpus 1 --fds 4096 --disk-mb 64 --tmp-mb 64 --inodes 4000)
url=
p=0 f=0 s=0

# battery NAME WORDS... - attacks on the server at $url; adds to p, f and s
battery() {
    local name=$1 json=$HOLDCELL_LOGS/$1.json status good bad other untold id
    shift
    HC_TOKEN=$TOKEN "$python" tests/attacks/attack.py --url "$url" --ipc --mem-mb 512 "${limits[@]}" \
        --server-log "$server_log" --json "$json" "$@"
    status=$?
    # what cannot be told is counted as skipped: never as held
    read -r good bad other <<<"$(verdicts "$json" HELD BROKEN)"
    if [ $status != 0 ] && [ "$bad" = 0 ]; then bad=1; fi
    # ... and as failed, unless known.txt says why it cannot be told
    untold=$(/usr/bin/python3 - "$json" tests/attacks/known.txt <<'PYTHON'
import json, sys
try:
    rows = json.load(open(sys.argv[1]))["results"]
except (OSError, ValueError):
    sys.exit()      # counted as a failure already
known = {line.split()[0] for line in open(sys.argv[2]) if line.strip() and line[0] != "#"}
for row in rows:
    if row["verdict"] not in ("HELD", "BROKEN") and row["id"] not in known:
        print(row["id"])
PYTHON
    )
    for id in $untold; do
        echo "$id: CANNOT TELL, and tests/attacks/known.txt does not say why"
        bad=$((bad + 1)) other=$((other - 1))
    done
    p=$((p + good)) f=$((f + bad)) s=$((s + other))
}

words=()
full_tier || words=(--only FS,PC,NE,PR,LK,XS)
start_server url --memory-mb 512 "${limits[@]}" || broken "the server did not start"
battery attacks --but TM03,TM05 ${words[@]+"${words[@]}"}
stop_server

# Deadlines would end other attacks before they have shown anything.
start_server url --memory-mb 512 "${limits[@]}" --cell-timeout 2 --stdin-timeout 2 || broken "the server did not start"
battery attacks-deadlines --only TM03,TM05 --cell-timeout 2 --stdin-timeout 2
counts "$p" "$f" "$s"
