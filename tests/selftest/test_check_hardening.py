"""What looks at the hardening of programs sees a program without each part of it."""

import pathlib
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import check_hardening  # noqa: E402

CODE = """
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
    char text[64];
    (void)argc;
    strcpy(text, argv[0]);
    puts(text);
    return 0;
}
"""
GOOD = ["-O2", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2", "-fstack-protector-strong", "-fPIE", "-pie", "-Wl,-z,relro,-z,now"]
GCC = shutil.which("gcc") or "gcc"


def faults(tmp_path, flags, static=False):
    (tmp_path / "program.c").write_text(CODE)
    subprocess.run([GCC, "-w", *flags, "-o", tmp_path / "program", tmp_path / "program.c"], check=True)
    elf = subprocess.run(["readelf", "-hldsW", tmp_path / "program"], capture_output=True, text=True, check=True).stdout
    return list(check_hardening.faults_of_program(elf, static))


def without(flag, *others):
    return [f for f in GOOD if f != flag] + list(others)


def test_a_hardened_program_has_no_fault(tmp_path):
    assert faults(tmp_path, GOOD) == []
    assert faults(tmp_path, without("-pie", "-static-pie"), static=True) == []


@pytest.mark.parametrize("flags, static, said", [
    (without("-pie", "-fno-pie", "-no-pie"), False, "no PIE"),
    (without("-Wl,-z,relro,-z,now", "-Wl,-z,norelro"), False, "no RELRO"),
    (without("-Wl,-z,relro,-z,now", "-Wl,-z,relro,-z,lazy"), False, "RELRO is not full"),
    (GOOD + ["-Wl,-z,execstack"], False, "stack is executable"),
    (without("-fstack-protector-strong", "-fno-stack-protector"), False, "no stack protector"),
    (without("-D_FORTIFY_SOURCE=2"), False, "fortified"),
    (GOOD, True, "needs a loader"),
    (without("-pie", "-static-pie"), False, "it is static"),
])
def test_a_program_that_lacks_a_part_is_told_so(tmp_path, flags, static, said):
    found = faults(tmp_path, flags, static)
    assert any(said in fault for fault in found), found


@pytest.mark.parametrize("flag", check_hardening.FLAGS + ["-fPIC"])
def test_a_file_compiled_without_a_flag_is_told_so(flag):
    words = ["cc", "-fPIC", *check_hardening.FLAGS]
    assert list(check_hardening.faults_of_command(" ".join(words), "a.c")) == []
    words.remove(flag)
    assert flag in "".join(check_hardening.faults_of_command(" ".join(words), "a.c"))
