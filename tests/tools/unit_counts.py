#!/usr/bin/env python3
"""Counts every test of the unit programs by itself: a program that skips all its tests is no pass.

unit_counts.py STATUS JUNIT SKIPS - STATUS is ctest's, JUNIT what `ctest --output-junit` wrote with the whole output of
each program (--test-output-size-passed), SKIPS the list tests/unit/skips.txt. Names what failed, what was skipped and
why, and prints `passed=N failed=N skipped=N` as its last line; exit status 0 when nothing failed.

What fails beside a failed test: a skip that SKIPS does not expect, a test that never came to its end, a program that
failed although its tests did not, and a line of SKIPS that names no test. What ctest runs and is no cmocka program
(the replay of a corpus) counts as one test."""

import ctypes
import errno
import os
import re
import sys
import xml.etree.ElementTree as tree

RUNNING = re.compile(r"^\[=+\] (?:\w+: )?Running (\d+) test\(s\)\.$", re.M)
# Whatever a test wrote without a line's end stands before it.
OUTCOME = re.compile(r"\[ *(OK|FAILED|SKIPPED|ERROR) *\] ([a-z]\w*)$", re.M)
LANDLOCK_CREATE_RULESET = 444


def has_landlock():
    libc = ctypes.CDLL(None, use_errno=True)
    got = libc.syscall(LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), 1)      # 1: which version
    return got > 0 or ctypes.get_errno() not in (errno.ENOSYS, errno.EOPNOTSUPP)


# When a line of the list holds: `always` is a thing that this run never has, `maybe` depends on the host's size.
CONDITIONS = {"always": lambda: True, "maybe": lambda: True, "no-landlock": lambda: not has_landlock(),
              "quick": lambda: os.environ.get("HOLDCELL_TIER") != "full"}


class Malformed(Exception):
    pass


def read_skips(text):
    """{(program, test): (condition, reason)}"""
    skips = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        words = line.split(None, 3)
        if len(words) < 4 or words[2] not in CONDITIONS:
            raise Malformed(f"line {number}: PROGRAM TEST {'|'.join(CONDITIONS)} REASON are asked for")
        skips[words[0], words[1]] = words[2], words[3]
    return skips


class Counts:
    def __init__(self, skips):
        self.skips, self.passed, self.failed, self.skipped = skips, 0, 0, 0
        self.known, self.programs = set(), set()

    def fail(self, text):
        self.failed += 1
        print("FAILED " + text)

    def skip(self, program, test):
        condition, reason = self.skips.get((program, test), (None, None))
        if condition and CONDITIONS[condition]():
            self.skipped += 1
            print(f"skipped {program} {test}: {reason}")
        elif condition:
            self.fail(f"{program} {test}: skipped, which is expected with '{condition}' alone")
        else:
            self.fail(f"{program} {test}: skipped, and the list of expected skips does not name it")

    def program(self, name, ok, output):
        """One entry of ctest."""
        self.programs.add(name)
        wanted = sum(int(n) for n in RUNNING.findall(output))
        if not wanted:
            self.plain(name, ok, output)
            return
        outcomes = {}
        for what, test in OUTCOME.findall(output):
            # A failed test is named again at the end; what a forked child printed again is the same.
            outcomes[test] = "FAILED" if "FAILED" in (what, outcomes.get(test)) or what == "ERROR" else what
        before = self.failed
        for test, what in outcomes.items():
            self.known.add((name, test))
            if what == "OK":
                self.passed += 1
            elif what == "SKIPPED":
                self.skip(name, test)
            else:
                self.fail(f"{name} {test}")
        for _ in range(wanted - len(outcomes)):
            self.fail(f"{name}: a test has no outcome")
        if len(outcomes) > wanted:
            self.fail(f"{name}: {len(outcomes)} outcomes of {wanted} tests")
        if not ok and self.failed == before:
            self.fail(f"{name}: the program failed, none of its tests did")
        if self.failed > before:
            print("\n".join(output.splitlines()[-40:]))

    def plain(self, name, ok, output):
        if ok:
            self.passed += 1
        else:
            self.fail(name)
            print("\n".join(output.splitlines()[-40:]))

    def end(self, status):
        for program, test in self.skips:
            if program in self.programs and (program, test) not in self.known:
                self.fail(f"{program} {test}: named in the list of skips, and there is no such test")
        if status != "0" and not self.failed:
            self.fail(f"ctest ended with status {status}")
        if not self.programs:
            self.fail("ctest ran nothing")
        print(f"passed={self.passed} failed={self.failed} skipped={self.skipped}")
        return self.failed != 0


def main(status, junit, list_of_skips):
    try:
        with open(list_of_skips, encoding="utf-8") as f:
            counts = Counts(read_skips(f.read()))
        cases = list(tree.parse(junit).getroot().iter("testcase"))
    except (OSError, tree.ParseError, Malformed) as error:
        print(f"{error}\npassed=0 failed=1 skipped=0")
        return 1
    for case in cases:
        counts.program(case.get("name"), case.get("status") == "run", case.findtext("system-out") or "")
    return counts.end(status)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
