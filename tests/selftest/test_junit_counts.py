"""tests/tools/junit_counts.py counts what is in the files, and nothing that fails is lost."""

import os
import subprocess
import sys

import pytest

TOOL = os.path.join(os.path.dirname(__file__), "..", "tools", "junit_counts.py")
CASES = {"passed": "", "failed": "<failure>line one\nthe last line</failure>", "broken": "<error message='no fixture'/>",
         "skipped": "<skipped message='not here'/>"}


@pytest.fixture
def counts(tmp_path):
    """counts(status, kinds, skips) - the exit status, the last line and all before it"""
    def run(status, kinds, skips=None, path=None):
        junit = tmp_path / "junit.xml"
        body = "".join(f"<testcase classname='test_it' name='{k}[{i}]'>{CASES[k]}</testcase>" for i, k in enumerate(kinds))
        numbers = {n: kinds.count(k) for n, k in (("failures", "failed"), ("errors", "broken"), ("skipped", "skipped"))}
        junit.write_text(f"<testsuites><testsuite tests='{len(kinds)}' " + " ".join(f"{n}='{v}'" for n, v in numbers.items()) +
                         f">{body}</testsuite></testsuites>")
        words = []
        if skips is not None:
            (tmp_path / "skips.txt").write_text(skips)
            words = ["--skips", str(tmp_path / "skips.txt")]
        got = subprocess.run([sys.executable, TOOL, *words, str(status), path or str(junit)], capture_output=True, text=True)
        *before, last = got.stdout.splitlines()
        return got.returncode, last, "\n".join(before)
    return run


def test_each_kind_is_counted_and_what_failed_is_named(counts):
    status, last, told = counts(1, ["passed", "passed", "failed", "broken", "skipped"])
    assert (status, last) == (1, "passed=2 failed=2 skipped=1")
    assert "failure: test_it::failed[2]\nline one\nthe last line" in told and "error: test_it::broken[3]\nno fixture" in told


def test_all_that_passed_is_well(counts):
    assert counts(0, ["passed", "skipped"]) == (0, "passed=1 failed=0 skipped=1", "")


def test_a_runner_that_failed_without_a_case_is_a_failure(counts):
    assert counts(2, ["passed"])[:2] == (1, "passed=1 failed=1 skipped=0")


def test_a_file_that_is_not_there_is_a_failure(counts):
    assert counts(0, ["passed"], path="/none.xml")[:2] == (1, "passed=0 failed=1 skipped=0")


def test_a_skip_that_is_expected_is_one(counts):
    assert counts(0, ["passed", "skipped"], "# why\ntest_it::skipped[[]*  it is never here\n")[:2] == (0, "passed=1 failed=0 skipped=1")


def test_a_skip_that_nobody_expects_fails_and_is_named(counts):
    status, last, told = counts(0, ["passed", "skipped"], "test_it::other  it is never here\n")
    assert (status, last) == (1, "passed=1 failed=1 skipped=0")
    assert "test_it::skipped[1]: not here" in told
