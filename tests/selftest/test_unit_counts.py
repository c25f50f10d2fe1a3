"""What counts the unit tests sees each way in which one can fail to have run."""

import pathlib
import subprocess
import sys
from xml.sax.saxutils import escape

import pytest

COUNTS = pathlib.Path(__file__).resolve().parents[1] / "tools" / "unit_counts.py"
PASSED = "[==========] Running 2 test(s).\n[ RUN      ] one\nnoise [       OK ] one\n[ RUN      ] two\n[       OK ] two\n"
ONE_SKIPPED = PASSED.replace("[       OK ] two", "[  SKIPPED ] two")
ALL_SKIPPED = ONE_SKIPPED.replace("[       OK ] one", "[  SKIPPED ] one")
FAILED = (PASSED.replace("[       OK ] two", "[  FAILED  ] two") +
          "[==========] 2 test(s) run.\n[  FAILED  ] 1 test(s), listed below:\n[  FAILED  ] two\n\n 1 FAILED TEST(S)\n")
DIED = PASSED[:PASSED.index("[       OK ] two")]


def run(tmp_path, programs, skips="", status="0"):
    cases = "".join(f'<testcase name="{name}" status="{"run" if ok else "fail"}"><system-out>{escape(text)}</system-out>'
                    "</testcase>" for name, ok, text in programs)
    (tmp_path / "junit.xml").write_text(f"<testsuite>{cases}</testsuite>")
    (tmp_path / "skips.txt").write_text(skips)
    got = subprocess.run([sys.executable, COUNTS, status, tmp_path / "junit.xml", tmp_path / "skips.txt"],
                         capture_output=True, text=True)
    assert got.returncode == ("failed=0" not in got.stdout.splitlines()[-1])
    return got.stdout.splitlines()[-1], got.stdout


SKIP_TWO = "a/x two always what it needs is not there\n"
SKIP_BOTH = SKIP_TWO + "a/x one maybe nor this\n"


@pytest.mark.parametrize("programs, skips, counts, said", [
    ([("a/x", True, PASSED)], "", "passed=2 failed=0 skipped=0", ""),
    ([("a/x", True, PASSED), ("fuzz/y", True, "7 inputs\n")], "", "passed=3 failed=0 skipped=0", ""),
    ([("a/x", True, ONE_SKIPPED)], SKIP_TWO, "passed=1 failed=0 skipped=1", "what it needs is not there"),
    ([("a/x", True, ALL_SKIPPED)], SKIP_BOTH, "passed=0 failed=0 skipped=2", "nor this"),
    ([("a/x", True, ONE_SKIPPED)], "", "passed=1 failed=1 skipped=0", "does not name it"),
    ([("b/x", True, ONE_SKIPPED)], SKIP_TWO, "passed=1 failed=1 skipped=0", "does not name it"),
    ([("a/x", False, FAILED)], "", "passed=1 failed=1 skipped=0", "FAILED a/x two"),
    ([("a/x", True, FAILED)], "", "passed=1 failed=1 skipped=0", "FAILED a/x two"),
    ([("a/x", False, DIED)], "", "passed=1 failed=1 skipped=0", "has no outcome"),
    ([("a/x", True, DIED)], "", "passed=1 failed=1 skipped=0", "has no outcome"),
    ([("a/x", False, PASSED)], "", "passed=2 failed=1 skipped=0", "none of its tests did"),
    ([("fuzz/y", False, "crash\n")], "", "passed=0 failed=1 skipped=0", "FAILED fuzz/y"),
    ([("a/x", True, PASSED)], "a/x three always gone\n", "passed=2 failed=1 skipped=0", "there is no such test"),
    ([], "", "passed=0 failed=1 skipped=0", "ctest ran nothing"),
    ([("a/x", True, PASSED)], "a/x two\n", "passed=0 failed=1 skipped=0", "line 1"),
    ([("a/x", True, PASSED)], "a/x two sometimes reason\n", "passed=0 failed=1 skipped=0", "line 1"),
])
def test_each_test_is_counted(tmp_path, programs, skips, counts, said):
    last, text = run(tmp_path, programs, skips)
    assert last == counts, text
    assert said in text


def test_a_status_of_ctest_without_a_failed_test_is_a_failure(tmp_path):
    assert run(tmp_path, [("a/x", True, PASSED)], status="8")[0] == "passed=2 failed=1 skipped=0"


def test_a_condition_that_does_not_hold_excuses_nothing(tmp_path):
    sys.path.insert(0, str(COUNTS.parent))
    import unit_counts
    last, _ = run(tmp_path, [("a/x", True, ONE_SKIPPED)], "a/x two no-landlock the kernel has none\n")
    assert last == ("passed=1 failed=1 skipped=0" if unit_counts.has_landlock() else "passed=1 failed=0 skipped=1")
