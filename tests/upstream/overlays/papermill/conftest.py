"""Papermill's tests have none: its engine makes the client of nbclient that is set up here."""

from gateway_manager import *  # noqa: F403
