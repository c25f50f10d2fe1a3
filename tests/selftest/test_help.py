"""The scripts that tell their use from their own first lines tell those whole, and nothing of the program below them."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHOWS = re.compile(r"sed -n '2,(\d+)p' \"(?:\$0|\$\{BASH_SOURCE\[0\]\})\"")
SCRIPTS = sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*.sh")
                 if "build" not in path.relative_to(ROOT).parts[:-1] and SHOWS.search(path.read_text()))


def test_there_are_such_scripts():
    assert {"quickstart.sh", "scripts/setup.sh", "tests/run.sh", "tests/vm.sh"} <= set(SCRIPTS)


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


@pytest.mark.parametrize("words, said", [
    (["--help"], ""),
    (["--test"], "setup.sh: unknown word '--test' (see --help)\n"),
    (["tests"], "setup.sh: unknown word 'tests' (see --help)\n"),
    ([""], "setup.sh: unknown word '' (see --help)\n"),
    (["--tests", "--help"], "setup.sh: unexpected word '--help' (see --help)\n"),
    (["--tests", "--tests"], "setup.sh: unexpected word '--tests' (see --help)\n"),
])
def test_setup_installs_nothing_for_words_that_it_does_not_know(tmp_path, words, said):
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("apt-get", "cmake", "dpkg-query", "sudo"):      # what it begins with; it must not come that far
        (programs / name).write_text(f"#!/bin/sh\n: >{tmp_path}/began\nexit 1\n")
        (programs / name).chmod(0o755)
    got = subprocess.run(["bash", tmp_path / "scripts/setup.sh", *words], capture_output=True, text=True, timeout=60,
                         env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "HOLDCELL_PREFIX": str(tmp_path / "prefix")})
    assert (got.returncode, got.stderr) == (2 if said else 0, said), got.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["programs", "scripts"], "nothing was begun"
