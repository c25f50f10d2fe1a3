#!/usr/bin/env python3
"""Counts the cases of JUnit files.

junit_counts.py [--skips LIST] STATUS JUNIT... - STATUS is the runner's: one that failed without a failing case (a broken
collection, say) is a failure of its own, and so is a file that cannot be read. What failed is named with its last lines
right before the counts, where who reads only the end of a log sees it. The last line is `passed=N failed=N skipped=N`;
exit status 0 when nothing failed.

With --skips a skip fails whose name no line of LIST has: PATTERN REASON, the pattern as fnmatch takes it, the name
FILE::TEST."""

import argparse
import fnmatch
import sys
import xml.etree.ElementTree as tree


def read_skips(path):
    with open(path) as f:
        lines = [line.split(None, 1) for line in f if line.strip() and not line.startswith("#")]
    if any(len(words) < 2 for words in lines):
        raise ValueError(f"{path}: a line is PATTERN REASON")
    return [pattern for pattern, _ in lines]


def count(path, expected):
    """passed, failed, skipped of a file; tells what failed."""
    passed = failed = skipped = 0
    for suite in tree.parse(path).getroot().iter("testsuite"):
        def number(name):
            return int(suite.get(name) or 0)
        bad, left_out = number("failures") + number("errors"), number("skipped") + number("disabled")
        passed += number("tests") - bad - left_out
        for case in suite.iter("testcase"):
            name = f"{case.get('classname')}::{case.get('name')}"
            for what in [*case.findall("failure"), *case.findall("error")]:
                print(f"\n{what.tag}: {name}")
                print(*(what.text or what.get("message") or "").splitlines()[-30:], sep="\n")
            if expected is not None and case.find("skipped") is not None and not any(fnmatch.fnmatchcase(name, p) for p in expected):
                print(f"\nskipped, and the list of expected skips does not name it: {name}: {case.find('skipped').get('message')}")
                bad, left_out = bad + 1, left_out - 1
        failed += bad
        skipped += left_out
    return passed, failed, skipped


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--skips")
    parser.add_argument("status", type=int)
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    expected = read_skips(options.skips) if options.skips else None
    totals = [0, 0, 0]
    for path in options.files:
        try:
            found = count(path, expected)
        except (OSError, tree.ParseError) as error:
            print(f"\n{path}: {error}")
            found = 0, 1, 0
        totals = [a + b for a, b in zip(totals, found)]
    if options.status and not totals[1]:
        totals[1] = 1
    print("passed={} failed={} skipped={}".format(*totals))
    return totals[1] != 0


if __name__ == "__main__":
    sys.exit(main())
