#!/usr/bin/env python3
"""own_results.py LOGS [--write]

Tables of what holdcell itself achieved in a run of tests/run.sh whose logs are in LOGS (build/test-logs): the cases of
tests/conformance by theme, and each attack of tests/attacks. --write puts each in its place in that folder's README.md,
else they are printed. Wants a run of both suites from its begin to its end, and run.txt, which says what ran. The Python that runs
this needs the packages of tests/requirements/tests.txt."""

import argparse
import pathlib
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- results of holdcell: begin -->\n", "<!-- results of holdcell: end -->\n"
ATTACKS = ["attacks-resources.json", "attacks-walls.json", "attacks-deadlines.json"]    # the lanes of suite 60


def wanted(logs, name):
    path = logs / name
    if not path.is_file():
        raise SystemExit(f"Error: {path} is missing: run both suites, tests/run.sh --only conformance --only attacks")
    return path


def tool(*words):
    run = subprocess.run([sys.executable, *map(str, words)], stdout=subprocess.PIPE, text=True)
    if run.returncode != 0:
        raise SystemExit(f"Error: {words[0]} ended with {run.returncode}")
    return run.stdout.strip() + "\n"


def conformance(logs):
    return tool(TESTS / "conformance/tools/table.py", TESTS / "conformance/cases", "--own",
                f"holdcell={wanted(logs, 'hconf-holdcell.json')}")


def attacks(logs):
    said = tool(TESTS / "attacks/attack.py", "--table", "holdcell=" + ",".join(str(wanted(logs, n)) for n in ATTACKS))
    # What was never BROKEN or HELD over many references says nothing over one.
    return "".join(line + "\n" for line in said.splitlines() if line.startswith("|"))


def placed(readme, text):
    """The README with the text where its marks are."""
    if readme.count(BEGIN) != 1 or readme.count(END) != 1 or readme.index(BEGIN) > readme.index(END):
        raise SystemExit("Error: the README has not one place for the results")
    head, rest = readme.split(BEGIN)
    return head + BEGIN + text + END + rest.split(END)[1]


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[2])
    parser.add_argument("logs", type=pathlib.Path)
    parser.add_argument("--write", action="store_true", help="into the README.md files, not to stdout")
    args = parser.parse_args(argv)
    stamp = "; ".join(wanted(args.logs, "run.txt").read_text().split("\n")[:3]) + ".\n\n"
    made = {"conformance": stamp + conformance(args.logs), "attacks": stamp + attacks(args.logs)}
    for name, text in made.items():
        readme = TESTS / name / "README.md"
        if args.write:
            readme.write_text(placed(readme.read_text(), text))
        else:
            print(f"{readme.relative_to(TESTS.parent)}:\n\n{text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
