#!/usr/bin/env python3
"""run.py --sources DIR --work DIR [--suite NAME]... [--write] [-- PYTEST WORDS]

Runs the upstream suites against $HOLDCELL_BIN and compares what becomes of each test
with expected.txt. The last line is `passed=N failed=N skipped=N`: failed counts tests
that are not as the file says, skipped those that do not apply or differ knowingly.

--write adds the tests that the file does not know to it, as `passed` or, to be
completed by hand, as `differs`.
"""

import argparse
import collections
import json
import os
import shutil
import subprocess
import sys

from expected import read_expected

HERE = os.path.dirname(os.path.abspath(__file__))
EXPECTED = os.path.join(HERE, "expected.txt")

Suite = collections.namedtuple("Suite", "source copy tests words", defaults=[()])

SUITES = {
    "kernel_gateway": Suite(
        "jupyter_kernel_gateway-3.0.1",
        ["tests"],
        ["tests/test_jupyter_websocket.py", "tests/test_gatewayapp.py", "tests/test_mixins.py"],
    ),
    "jupyter_server": Suite(
        "jupyter_server-2.21.1",
        ["tests/__init__.py", "tests/utils.py", "tests/services"],
        [
            "tests/services/kernels/test_api.py",
            "tests/services/kernels/test_connection.py",
            "tests/services/kernels/test_cull.py",
            "tests/services/kernels/test_execution_state.py",
            "tests/services/kernels/test_restart_error.py",
            "tests/services/kernelspecs/test_api.py",
            "tests/services/sessions/test_api.py",
        ],
    ),
    # The other rows choose among Python classes that are not in use then.
    "jupyter_server_front": Suite(
        "jupyter_server-2.21.1",
        ["tests/__init__.py", "tests/utils.py", "tests/services"],
        [
            "tests/services/kernels/test_api.py",
            "tests/services/kernels/test_execution_state.py",
            "tests/services/kernels/test_restart_error.py",
            "tests/services/kernelspecs/test_api.py",
            "tests/services/sessions/test_api.py",
        ],
        ["-k", "not (jp_server_config1 or jp_server_config2 or jp_server_config3)"],
    ),
    "enterprise_gateway": Suite(
        "jupyter_enterprise_gateway-3.3.0",
        [
            "enterprise_gateway/__init__.py",
            "enterprise_gateway/_version.py",
            "enterprise_gateway/client",
            "enterprise_gateway/itests",
        ],
        [
            "enterprise_gateway/itests/test_python_kernel.py",
            "enterprise_gateway/itests/test_r_kernel.py",
            "enterprise_gateway/itests/test_scala_kernel.py",
            "enterprise_gateway/itests/test_authorization.py",
        ],
    ),
    "jupyter_client": Suite("jupyter_client-8.10.0", ["tests/__init__.py", "tests/test_session.py"], ["tests/test_session.py"]),
    "kernel_test": Suite("jupyter_kernel_test-0.7.0", ["test_ipykernel.py", "jupyter_kernel_test"], ["test_gateway.py"]),
    "nbclient": Suite("nbclient-0.11.0", ["tests"], ["tests/test_client.py"]),
    "papermill": Suite(
        "papermill-2.7.0", ["papermill"], ["papermill/tests/test_execute.py", "papermill/tests/test_clientwrap.py"]
    ),
}

INI = """[pytest]
markers =
    flaky: upstream runs it again when it fails; here it must pass at once
"""


def lay_out(suite, sources, tree):
    """Upstream's files with ours in the place of their conftest.py."""
    shutil.rmtree(tree, ignore_errors=True)
    for name in suite.copy:
        source, target = os.path.join(sources, suite.source, name), os.path.join(tree, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        (shutil.copytree if os.path.isdir(source) else shutil.copy)(source, target)
    with open(os.path.join(tree, "pytest.ini"), "w") as f:
        f.write(INI)


def suite_root(tree):
    """Where upstream's conftest.py is."""
    tests = os.path.join(tree, "tests")
    return tests if os.path.isdir(tests) else tree


def run_suite(name, options, words):
    suite, tree = SUITES[name], os.path.join(options.work, name)
    lay_out(suite, options.sources, tree)
    for file in os.listdir(os.path.join(HERE, "overlays", name)):
        shutil.copy(os.path.join(HERE, "overlays", name, file), suite_root(tree))
    record = os.path.join(options.work, name + ".json")
    environment = {
        **os.environ,
        "PYTHONPATH": HERE,
        "UPSTREAM_EXPECTED": EXPECTED,
        "UPSTREAM_SUITE": name,
        "UPSTREAM_RECORD": record,
        "UPSTREAM_LOGS": options.work,
        "JUPYTER_PLATFORM_DIRS": "1",
    }
    argv = [sys.executable, "-m", "pytest", "-p", "recorder", "-p", "no:cacheprovider", "-q", "--tb=short", "-ra"]
    argv += [f"--basetemp={options.work}/tmp-{name}", *suite.words, *words, *suite.tests]
    if os.path.exists(record):
        os.unlink(record)
    subprocess.run(argv, cwd=tree, env=environment, stdin=subprocess.DEVNULL, check=False)
    try:
        with open(record) as f:
            return json.load(f)
    except (OSError, ValueError):
        return {"pytest": ["failed", "it wrote no record"]}


def compare(entries, record, partial):
    """(counts by verdict, list of what is not as expected)"""
    counts, wrong, seen = collections.Counter(), [], set()
    for node, (outcome, text) in record.items():
        entry = entries.find(node)
        if entry is None:
            wrong.append(f"{node}: {outcome}, and expected.txt does not know it")
            continue
        seen.add(entry)
        if entry.verdict == "n/a":
            counts["n/a"] += 1
        elif entry.verdict in ("passed", "varies") and outcome == "passed":
            counts[entry.verdict] += 1
        elif entry.shows and outcome == "failed" and entry.shows in text:
            counts[entry.verdict] += 1
        elif entry.shows and outcome == "failed":
            wrong.append(f"{node}: differs otherwise than expected.txt says: no '{entry.shows}' in it")
        else:
            wrong.append(f"{node}: {outcome}, expected: {entry.verdict}")
    if not partial:
        wrong += [f"{e.id}: not there any more (line {e.line})" for e in entries if e not in seen]
    return counts, wrong


def write(suite, record, entries):
    """Adds what is not there to the file, below its suite's heading."""
    new = []
    for node, (outcome, text) in sorted(record.items()):
        if entries.find(node) is None:
            last = text.strip().splitlines()[-1] if text.strip() else ""
            new.append(f"passed | {node}" if outcome == "passed" else f"differs | {node} | {last} | WHY")
    with open(EXPECTED) as f:
        lines = f.read().split("\n")
    at = lines.index(f"[{suite}]") + 1
    lines[at:at] = new
    with open(EXPECTED, "w") as f:
        f.write("\n".join(lines))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--sources", required=True)
    p.add_argument("--work", required=True)
    p.add_argument("--suite", action="append", choices=SUITES)
    p.add_argument("--write", action="store_true")
    p.add_argument("words", nargs="*")
    options = p.parse_args()
    os.makedirs(options.work, exist_ok=True)
    os.chmod(options.work, 0o755)
    rows, bad, total = [], [], collections.Counter()
    for name in options.suite or SUITES:
        record = run_suite(name, options, options.words)
        entries = read_expected(EXPECTED, name)
        if options.write:
            write(name, record, entries)
        counts, wrong = compare(entries, record, partial=bool(options.words))
        different = counts["differs"] + counts["varies"]
        rows.append(f"{name:20} {counts['passed']:7} {counts['n/a']:15} {different:10} {len(wrong):7}")
        bad += [f"{name}: {w}" for w in wrong]
        total += counts
        total["wrong"] += len(wrong)
    print(f"\n{'suite':20} {'passed':>7} {'not applicable':>15} {'different':>10} {'WRONG':>7}")
    print("\n".join(rows))
    print("\n".join(bad))
    left = total["n/a"] + total["differs"] + total["varies"]
    print(f"passed={total['passed']} failed={total['wrong']} skipped={left}")
    sys.exit(total["wrong"] != 0)


if __name__ == "__main__":
    main()
