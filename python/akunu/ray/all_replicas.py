"""Requests that go to every replica, and how their answers become one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final

from prometheus_client import generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector, CollectorRegistry

PATHS_FOR_ALL: Final = {
    ("GET", "/metrics"),
    ("GET", "/v1/metrics"),
    ("POST", "/v1/models/load"),
    ("POST", "/v1/models/unload"),
    ("POST", "/models/load"),
    ("POST", "/models/unload"),
}
"""Requests for all replicas: they read each one's counters, or change each one."""


def answer_of_all(path: str, answers: Sequence[tuple[str, int, bytes]]) -> tuple[int, bytes]:
    """Return one status and body for the answers of all replicas, each with the replica's name.

    Prometheus counters get a label `replica`; JSON counters are under the replica's name. For other
    requests, the first error is returned, or the first answer if there is no error.
    """
    failed = next(((status, body) for _, status, body in answers if status >= 400), None)
    if failed is not None:
        return failed
    if path == "/metrics":
        return 200, _labelled((name, body.decode()) for name, _, body in answers)
    if path == "/v1/metrics":
        replicas = {name: json.loads(body) for name, _, body in answers}
        return 200, json.dumps({"replicas": replicas}).encode()
    return answers[0][1:]


def _labelled(texts: Iterable[tuple[str, str]]) -> bytes:
    """Return the pages that several replicas have for Prometheus as one page.

    >>> page = "# HELP a_total A.\\n# TYPE a_total counter\\na_total 1.0\\n"
    >>> print(_labelled([("x", page), ("y", page)]).decode(), end="")
    # HELP a_total A.
    # TYPE a_total counter
    a_total{replica="x"} 1.0
    a_total{replica="y"} 1.0
    """
    families: dict[str, Metric] = {}
    for replica, text in texts:
        for family in text_string_to_metric_families(text):
            merged = families.setdefault(
                family.name, Metric(family.name, family.documentation, family.type)
            )
            for sample in family.samples:
                labels = {**sample.labels, "replica": replica}
                merged.add_sample(sample.name, labels, sample.value, sample.timestamp)
    registry = CollectorRegistry()
    registry.register(_Collected(list(families.values())))
    found: bytes = generate_latest(registry)
    return found


class _Collected(Collector):
    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families
