"""In the place of jupyter_server's tests/conftest.py."""

from fixtures import *  # noqa: F403

pytest_plugins = ["jupyter_server.pytest_plugin"]
