"""`akunu pull`: bring a model here."""

from __future__ import annotations

from akunu.cli.download_progress import DownloadWatch
from akunu.cli.terminal import console
from akunu.hub.find import fetchable
from akunu.loading import fetch
from akunu.options.text_options import LoadOptions


def pull_model(name: str) -> int:
    """Fetch a model; write the path of its file to stdout and return the exit code."""
    path = fetch(fetchable(name), LoadOptions(), DownloadWatch(), must_fit=False)
    console.write(f"{path}\n")
    return 0
