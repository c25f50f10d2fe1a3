"""The tables of holdcell's own results say what the logs say, and nothing without all of them."""

import json
import pathlib
import subprocess
import sys

import pytest

TOOL = pathlib.Path(__file__).resolve().parents[1] / "tools" / "own_results.py"
sys.path.insert(0, str(TOOL.parent))
import own_results  # noqa: E402

STAMP = "holdcell 0.0.0 (commit 0123456789ab)\n2001-02-03, quick tier\n2 cores, Linux 1.2\n"


def case_ids():
    """Two ids of cases that there are, of one theme."""
    run = subprocess.run([sys.executable, "-c", "import sys, table; print(*sorted(c for c, m in table.cases(sys.argv[1]).items()"
                          " if m['theme'] == 'auth')[:2])", str(own_results.TESTS / "conformance/cases")],
                         cwd=own_results.TESTS / "conformance/tools", capture_output=True, text=True)
    return run.stdout.split()


@pytest.fixture
def logs(tmp_path):
    (tmp_path / "run.txt").write_text(STAMP)
    for name, (attack, verdict) in zip(own_results.ATTACKS, [("RS01", "HELD"), ("FS01", "BROKEN"), ("TM03", "CANNOT TELL")]):
        (tmp_path / name).write_text(json.dumps({"results": [{"id": attack, "verdict": verdict}]}))
    return tmp_path


def run(*words):
    return subprocess.run([sys.executable, TOOL, *map(str, words)], capture_output=True, text=True)


def test_each_verdict_and_each_case_that_did_not_pass_is_told_with_the_commit(logs):
    good, bad = case_ids()
    (logs / "hconf-holdcell.json").write_text(json.dumps({good: "passed", bad: "failed"}))
    said = run(logs)
    assert said.returncode == 0, said.stderr
    assert said.stdout.count("holdcell 0.0.0 (commit 0123456789ab); 2001-02-03, quick tier; 2 cores, Linux 1.2.") == 2
    assert "| auth | 2 | 1 / 1 / 0 |" in said.stdout
    assert f"holdcell, failed: {bad}." in said.stdout and "holdcell, skipped: none." in said.stdout
    rows = {line.split(" | ")[0][2:]: line for line in said.stdout.splitlines() if line.startswith("| ")}
    assert rows["RS01"].endswith("| HELD |") and rows["FS01"].endswith("| BROKEN |")
    assert rows["TM03"].endswith("| CANNOT TELL |") and rows["FS02"].endswith("| - |")


@pytest.mark.parametrize("missing", ["run.txt", "hconf-holdcell.json", "attacks-deadlines.json"])
def test_without_one_of_the_results_there_is_no_table(logs, missing):
    (logs / "hconf-holdcell.json").write_text(json.dumps({case_ids()[0]: "passed"}))
    (logs / missing).unlink()
    said = run(logs)
    assert said.returncode != 0 and missing in said.stderr and "|" not in said.stdout


def test_both_readmes_have_one_place_and_the_rest_of_them_stays():
    for name in ("conformance", "attacks"):
        text = (own_results.TESTS / name / "README.md").read_text()
        once = own_results.placed(text, "| new |\n")
        assert "| new |" in once and own_results.placed(once, "| newer |\n").count("| new") == 1
        begin, end = text.index(own_results.BEGIN), text.index(own_results.END)
        assert once.startswith(text[:begin]) and once.endswith(text[end:])
    with pytest.raises(SystemExit):
        own_results.placed("no place", "| new |\n")
