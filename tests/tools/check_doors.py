#!/usr/bin/env python3
"""Shows that an include against the doors of docs/ARCHITECTURE.md does not compile.

check_doors.py BUILD [--tree TREE] - BUILD holds compile_commands.json of the whole tree. For each target and each folder
that it may not see a header of that folder is compiled by the target's own command, which must fail; as must uv.h, zmq.h and
jansson.h where they are closed. A header that the target may see must compile by the same command, or nothing was shown.
Then every include of the tree is read: none climbs by `..`, and the gateway takes nothing of sandbox/ but what a process does
to itself. Faults a line each; the last line is `passed=N failed=N skipped=0`."""

import argparse
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys

ROOMS = ["base", "report", "rules", "wire", "records", "kernels", "http", "jupyter"]
# The table "Rooms of the gateway": what stands above each, with what that stands on.
SEES = {"base": [], "report": ["base"], "rules": ["report"], "wire": ["report"], "records": ["rules", "wire"],
        "kernels": ["records"], "http": ["rules"], "jupyter": ["kernels", "http"]}
FOLDERS = ["protocol", "sandbox", "sandbox/self", "sandbox/gen", "sandbox/probes", "kernel-launcher",
           "kernel-launcher/shared", "kernel-launcher/init", "gateway", "cli",
           *("gateway/" + room for room in ROOMS)]
LIBRARIES = ["uv", "zmq", "jansson"]
# What the gateway and the supervisor do to themselves (hc_harden, hc_seccomp): all that they may take of sandbox/.
OWN_WALLS = {"harden.h", "landlock.h", "caps.h", "rlimits.h", "seccomp.h", "walls.h"}


def rooms_seen(room):
    seen = {room}
    for above in SEES[room]:
        seen |= rooms_seen(above)
    return seen


def targets():
    """{target: (its folder, the folders that it may see, the libraries that it may include)}"""
    base, own, box = {"protocol"}, {"protocol", "sandbox/self"}, {"protocol", "sandbox", "sandbox/self"}
    shared = {"kernel-launcher/shared"}
    rooms = {"gateway/" + room for room in ROOMS}
    table = {
        "hc_base": ("protocol", base, set()),
        "hc_protocol": ("protocol", base, set()),
        "hc_seccomp_profile": ("sandbox/gen", base | {"sandbox/gen"}, set()),
        "hc_seccomp": ("sandbox/self", own, set()),
        "hc_harden": ("sandbox/self", own, set()),
        "hc_sandbox": ("sandbox", box, set()),
        "hc_probes": ("sandbox/probes", box | {"sandbox/probes"}, set()),
        "hc_launcher_shared": ("kernel-launcher/shared", base | shared, set()),
        "hc_launcher": ("kernel-launcher", box | shared | {"kernel-launcher"}, set()),
        "holdcell-launcher": ("kernel-launcher", box | shared | {"kernel-launcher", "sandbox/probes"}, set()),
        "hc_init": ("kernel-launcher/init", box | {"kernel-launcher/init"}, set()),
        "holdcell-init": ("kernel-launcher/init", box | {"kernel-launcher/init"}, set()),
        "hc_gateway": ("gateway", base | rooms | {"gateway", "sandbox/self"}, set(LIBRARIES)),
        "holdcell": ("cli", base | rooms | shared | {"gateway", "sandbox/self", "cli"}, set()),
    }
    for room in ROOMS:
        libraries = {"uv", "jansson"} | ({"zmq"} if room == "wire" else set())
        table["hc_gateway_" + room] = "gateway/" + room, base | {"gateway/" + r for r in rooms_seen(room)}, libraries
    return table


def commands_of(build):
    """{target: words of a command of it, without its source and output}"""
    found = {}
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        for entry in json.load(f):
            words = shlex.split(entry["command"])
            output = words[words.index("-o") + 1]
            target = re.search(r"CMakeFiles/([^/]+)\.dir/", output)
            if not target or target.group(1) in found:
                continue
            # What is compiled is ours to say; where it is looked for is the target's.
            drop = {words.index("-o"), words.index("-o") + 1, words.index("-c"), words.index("-c") + 1}
            if os.path.basename(words[0]) in ("ccache", "sccache"):
                drop.add(0)
            found[target.group(1)] = [w for i, w in enumerate(words) if i not in drop]
    return found


def header_of(tree, folder):
    """A header by whose name nothing in another folder goes."""
    names = {f: [n for n in os.listdir(os.path.join(tree, f)) if n.endswith(".h")] for f in FOLDERS}
    own = sorted(n for n in names[folder] if not any(n in names[f] for f in FOLDERS if f != folder) and
                 not os.path.exists("/usr/include/" + n))
    return own[0] if own else None


def compiles(words, header, build):
    text = f"#include {header}\nint main(void);\n"
    got = subprocess.run([*words, "-fsyntax-only", "-Wno-error", "-x", "c", "-"], input=text, capture_output=True, text=True, cwd=build)
    return got.returncode == 0, got.stderr


def questions(tree, commands):
    """(target, what is included, whether it has to compile, what the compiler must say if not)"""
    for target, (own, may, libraries) in targets().items():
        if target not in commands:
            yield target, None, True, ""
            continue
        for folder in FOLDERS:
            header = header_of(tree, folder)
            if header:
                yield target, f'"{header}"', folder in may, f"{header}: No such file"
        for library in LIBRARIES:
            yield target, f"<{library}.h>", library in libraries, f"{library}.h is not for this folder"


def ask(question, commands, build):
    target, header, wanted, said = question
    if header is None:
        return f"{target}: there is no such target in the build"
    ok, text = compiles(commands[target], header, build)
    if wanted and not ok:
        return f"{target} cannot include {header}: {text.strip()[:300]}"
    if not wanted and ok:
        return f"{target} can include {header}"
    if not wanted and said not in text:
        return f"{target}: {header} fails for another reason: {text.strip()[:300]}"
    return None


def includes(tree):
    """(file, what it includes) of our folders."""
    for top in ("protocol", "sandbox", "kernel-launcher", "gateway", "cli"):
        for folder, _, names in os.walk(os.path.join(tree, top)):
            for name in names:
                if name.endswith((".c", ".h")):
                    path = os.path.join(folder, name)
                    with open(path, encoding="utf-8") as f:
                        for header in re.findall(r'^\s*#\s*include\s+["<]([^">]+)[">]', f.read(), re.M):
                            yield os.path.relpath(path, tree), header


def fault_of_include(path, header, box):
    if ".." in header.split("/"):
        return f"{path} climbs: {header}"
    if path.startswith(("gateway/", "cli/")) and header in box - OWN_WALLS:
        return f"{path} includes {header} of sandbox/"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("--tree", default=".")
    words = parser.parse_args()
    commands = commands_of(words.build)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda q: ask(q, commands, words.build), questions(words.tree, commands)))
    box = {n for n in os.listdir(os.path.join(words.tree, "sandbox")) if n.endswith(".h")}
    box -= {n for f in FOLDERS if f != "sandbox" for n in os.listdir(os.path.join(words.tree, f))}
    results += [fault_of_include(path, header, box) for path, header in includes(words.tree)]
    faults = [r for r in results if r]
    print(*faults, sep="\n")
    print(f"passed={len(results) - len(faults)} failed={len(faults)} skipped=0")
    return len(faults) > 0


if __name__ == "__main__":
    sys.exit(main())
