"""pytest plugin: leaves out the tests that do not apply, writes what became of the
others, a JSON object {id: [outcome, text]}, to $UPSTREAM_RECORD."""

import gc
import json
import os

import pytest
from expected import read_expected

record = {}
entries = read_expected(os.environ["UPSTREAM_EXPECTED"], os.environ["UPSTREAM_SUITE"])


def pytest_collection_modifyitems(config, items):
    keep, leave = [], []
    for item in items:
        entry = entries.find(item.nodeid)
        if entry is not None and entry.verdict == "n/a":
            record[item.nodeid] = ["left out", ""]
            leave.append(item)
            continue
        keep.append(item)
        # The machine may be busy; a test that hangs still ends.
        item.add_marker(pytest.mark.timeout(120, func_only=True), append=False)
    items[:] = keep
    config.hook.pytest_deselected(items=leave)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport():
    """No garbage is collected here: a finaliser that logs a traceback parses source code for it, and Python 3.11.2 ends
    in a SystemError when it was parsing at that moment (gh-106905)."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_runtest_logreport(report):
    text = getattr(report, "longreprtext", "")
    if report.outcome == "failed":
        record[report.nodeid] = ["failed", text]
    elif report.outcome == "skipped" and not hasattr(report, "context"):  # not of a subtest
        record[report.nodeid] = ["skipped", str(report.longrepr)]
    elif report.when == "call" and report.nodeid not in record:
        record[report.nodeid] = ["passed", ""]


def pytest_collectreport(report):
    if report.failed:
        record[report.nodeid] = ["failed", report.longreprtext]


def pytest_sessionfinish():
    with open(os.environ["UPSTREAM_RECORD"], "w") as f:
        json.dump(record, f)
