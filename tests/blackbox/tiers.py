"""The tiers of the tests, for all of pytest's suites: what is marked `full` runs in the full tier alone (tests/run.sh --full)."""

import os

import pytest

FULL = os.environ.get("HOLDCELL_TIER") == "full"


def full_after(count, rows):
    """The rows as parameters of a test: those after the first `count` are of the full tier alone."""
    rows = [row if isinstance(row, tuple) else (row,) for row in rows]
    return [pytest.param(*row, marks=pytest.mark.full if i >= count else ()) for i, row in enumerate(rows)]


def pytest_configure(config):
    config.addinivalue_line("markers", "full: only in the full tier (tests/run.sh --full)")


@pytest.hookimpl(trylast=True)      # a suite's own rule may still add the mark
def pytest_collection_modifyitems(config, items):
    for item in items:
        if not FULL and item.get_closest_marker("full"):
            item.add_marker(pytest.mark.skip(reason="full tier only"))
