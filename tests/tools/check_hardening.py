#!/usr/bin/env python3
"""Looks whether the programs and their compile commands are hardened as docs/HACKING.md says.

check_hardening.py BUILD - a build of the preset release, made for the tests. Reads the ELF files with readelf (binutils
come with the compiler) and BUILD/compile_commands.json. A line for each thing that is wrong; the last line is
`passed=N failed=N skipped=0`, exit status 0 when nothing failed."""

import json
import os
import re
import subprocess
import sys

PROGRAMS = {"holdcell": False, "holdcell-launcher": False, "holdcell-init": True}       # whether it is static
FLAGS = ["-Wall", "-Wextra", "-fstack-protector-strong", "-D_FORTIFY_SOURCE=2"]


def faults_of_program(elf, static):
    """`elf` is the output of readelf for header, program headers, dynamic section and symbols."""
    if not re.search(r"Type:\s+DYN ", elf):
        yield "it is linked to one address (no PIE)"
    if not re.search(r"\(FLAGS_1\).*\bPIE\b", elf):
        yield "it is no PIE by its flags"
    if "GNU_RELRO" not in elf:
        yield "nothing of it is read-only after relocation (no RELRO)"
    if not re.search(r"\((FLAGS|FLAGS_1|BIND_NOW)\).*(BIND_NOW|\bNOW\b)", elf):
        yield "its symbols are bound late (RELRO is not full)"
    stack = re.search(r"GNU_STACK\s+(?:0x\w+\s+){5}(\w+)", elf)
    if not stack or "E" in stack.group(1):
        yield "its stack is executable"
    if "__stack_chk_fail" not in elf:
        yield "it has no stack protector"
    if not re.search(r"__\w+_chk\b", elf.replace("__stack_chk", "")):
        yield "no call of it is fortified"
    if static and ("(NEEDED)" in elf or "INTERP" in elf):
        yield "it needs a loader or libraries, where a session's root may have none"
    if not static and "INTERP" not in elf:
        yield "it is static"


def faults_of_command(command, path):
    """Of one entry of compile_commands.json."""
    words = command.split()
    for flag in FLAGS:
        if flag not in words:
            yield f"{path}: compiled without {flag}"
    if "-fPIE" not in words and "-fPIC" not in words:
        yield f"{path}: compiled without -fPIE or -fPIC"


def main(build):
    passed, failed = 0, []
    for name, static in PROGRAMS.items():
        path = os.path.join(build, "bin", name)
        got = subprocess.run(["readelf", "-hldsW", path], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
        found = [f"{path}: {f}" for f in faults_of_program(got.stdout, static)] if got.returncode == 0 else [got.stderr.strip()]
        passed += not found
        failed += found
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        for entry in json.load(f):
            found = list(faults_of_command(entry["command"], entry["file"]))
            passed += not found
            failed += found
    print(*failed, sep="\n")
    print(f"passed={passed} failed={len(failed)} skipped=0")
    return len(failed) > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
