#!/usr/bin/env python3
"""verdicts.py JSON - whether the battery gave the control cases of control.py the verdicts that they must have: a line
`ID right` or `ID wrong: ...` each. Exit status 1 when one is wrong."""
import json, re, sys

MUST = {
    "CT01": ("HELD", "all three are there"),
    "CT02": ("BROKEN", r"gateway \+6\d MB"),
    "CT03": ("BROKEN", r"launcher \+6\d MB"),
    "CT04": ("BROKEN", r"server \+6\d MB"),
    "CT05": ("BROKEN", r"^control: gateway \d+ was replaced by \d+"),
    "CT06": ("BROKEN", r"launcher \d+ was replaced by \d+.*gateway \d+ (was replaced|died)|gateway \d+ (was replaced|died).*launcher \d+ was replaced"),
    "CT07": ("HELD", "all three are there"),
    "CT08": ("BROKEN", r"server \d+ died"),
}


def main(path):
    try:
        rows = {r["id"]: r for r in json.load(open(path))["results"]}
    except (OSError, ValueError) as error:
        print("file wrong: %s" % error)
        return 1
    bad = 0
    for cid, (kind, why) in MUST.items():
        r = rows.get(cid, {"verdict": "not run", "why": ""})
        if r["verdict"] == kind and re.search(why, r["why"]):
            print(cid, "right")
        else:
            print(cid, "wrong: %s (%s)" % (r["verdict"], r["why"])); bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
