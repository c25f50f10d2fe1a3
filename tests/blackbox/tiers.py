"""The tiers of the tests, for all of pytest's suites: what is marked `full` runs in the full tier alone (tests/run.sh --full)."""

import os

import pytest

FULL = os.environ.get("HOLDCELL_TIER") == "full"


def pytest_configure(config):
    config.addinivalue_line("markers", "full: only in the full tier (tests/run.sh --full)")


@pytest.hookimpl(trylast=True)      # a suite's own rule may still add the mark
def pytest_collection_modifyitems(config, items):
    for item in items:
        if not FULL and item.get_closest_marker("full"):
            item.add_marker(pytest.mark.skip(reason="full tier only"))
