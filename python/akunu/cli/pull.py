"""`akunu pull`: bring a model here."""

from __future__ import annotations

from akunu.cli import console
from akunu.cli.download import DownloadWatch
from akunu.hub.find import fetch, fetchable
from akunu.options import LoadOptions


def pull_model(name: str) -> int:
    """Fetch a model; write the path of its file to stdout and return the exit code."""
    path = fetch(fetchable(name), LoadOptions(), DownloadWatch(), must_fit=False)
    console.write(f"{path}\n")
    return 0
