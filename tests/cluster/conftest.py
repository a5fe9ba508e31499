"""One cluster for the tests of this folder, which take it in the order of the file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

sys.path.append(str(Path(__file__).parents[1] / "server"))  # test_metrics

from ray_cluster import OPTIONS, Cluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two replicas of one processor each."""
    found = Cluster(tmp_path_factory.mktemp("ray"), *OPTIONS)
    try:
        while not found.is_there():  # a busy machine
            found = Cluster(tmp_path_factory.mktemp("ray"), *OPTIONS)
        yield found
    finally:
        if found.process.poll() is None:
            found.end()


@pytest.fixture
def client(cluster: Cluster) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=cluster.address, timeout=120) as client:
        yield client
