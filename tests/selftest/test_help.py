"""The scripts that tell their use from their own first lines tell those whole, and nothing of the program below them."""

import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHOWS = re.compile(r"sed -n '2,(\d+)p' \"(?:\$0|\$\{BASH_SOURCE\[0\]\})\"")
SCRIPTS = sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*.sh")
                 if "build" not in path.relative_to(ROOT).parts[:-1] and SHOWS.search(path.read_text()))


def test_there_are_such_scripts():
    assert {"quickstart.sh", "tests/run.sh", "tests/vm.sh"} <= set(SCRIPTS)


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_help_of_a_script_is_its_first_comment(script):
    lines = (ROOT / script).read_text().splitlines()
    asked = [] if script == "tests/conformance/run.sh" else ["--help"]      # that one wants the name of a server
    told = subprocess.run(["bash", ROOT / script, *asked], capture_output=True, text=True, timeout=60)
    told = (told.stdout + told.stderr).splitlines()
    assert told, "it says nothing"
    ours = lines[1:1 + len(told)]
    assert all(line.startswith("#") for line in ours), f"it shows code: {told[-1]}"
    assert told == [re.sub(r"^# ?", "", line) for line in ours]
    assert told[-1].strip(), "it ends with an empty line"
    assert not re.match(r"# ?\S", lines[1 + len(told)]), "it ends in the middle of the text"
