# what: hostile cells against a session's walls
# tier: quick
# timeout: 1500
# beside: quick
# full adds: resource exhaustion, protocol, time-outs, display and in-language attacks
. "$(dirname "$0")/lib.sh"

python=$(test_python) || broken "no environment for the tests"
limits=(--pids 128 --cpus 1 --fds 4096 --disk-mb 64 --tmp-mb 64 --inodes 4000)
url=
start_server url --memory-mb 512 "${limits[@]}" || broken "the server did not start"
words=()
full_tier || words=(--only FS,PC,NE,PR,LK,XS)
HC_TOKEN=$TOKEN "$python" tests/attacks/attack.py --url "$url" --ipc --mem-mb 512 "${limits[@]}" \
    --server-log "$server_log" --json "$HOLDCELL_LOGS/attacks.json" ${words[@]+"${words[@]}"}
status=$?
# what cannot be told is counted as skipped: never as held
read -r p f s <<<"$(verdicts "$HOLDCELL_LOGS/attacks.json" HELD BROKEN)"
if [ $status != 0 ] && [ "$f" = 0 ]; then f=1; fi
# ... and as failed, unless known.txt says why it cannot be told
untold=$(/usr/bin/python3 - "$HOLDCELL_LOGS/attacks.json" tests/attacks/known.txt <<'PYTHON'
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
    f=$((f + 1)) s=$((s - 1))
done
counts "$p" "$f" "$s"
