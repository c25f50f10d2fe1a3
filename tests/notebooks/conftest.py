"""Where the helpers of the other suites are, and the tiers."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "blackbox"), str(HERE.parent / "tools")]
pytest_plugins = ["tiers"]
