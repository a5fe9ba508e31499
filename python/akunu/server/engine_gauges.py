"""What the engines of loaded models are busy with, read when somebody asks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from akunu.model_facts import Occupancy
from akunu.server.models import ServedModel


class EngineGauges(Collector):
    """Gauges of each model that is loaded."""

    def __init__(self, models: Sequence[ServedModel]) -> None:
        """`models`: those of the server; they say themselves which are loaded."""
        self._models = models

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauges as they are now."""
        waiting = GaugeMetricFamily(
            "akunu_engine_waiting",
            "Requests that wait for the engine.",
            labels=["model"],
        )
        running = GaugeMetricFamily(
            "akunu_engine_running",
            "Requests in the engine: prompts, texts and logits that are computed side by side.",
            labels=["model"],
        )
        pages = GaugeMetricFamily(
            "akunu_cache_pages",
            "Pages of the cache, by the layers that they are for and by who has them.",
            labels=["model", "kind", "state"],
        )
        for name, now in self._occupancies():
            waiting.add_metric([name], now.waiting)
            running.add_metric([name], now.running)
            for each in now.cache:
                for state in ("in_use", "cached", "free"):
                    pages.add_metric([name, each.kind, state], getattr(each, state))
        yield from (waiting, running, pages)

    def summary(self) -> dict[str, dict[str, Any]]:
        """Return the same for JSON, by model."""
        return {name: asdict(now) for name, now in self._occupancies()}

    def _occupancies(self) -> Iterator[tuple[str, Occupancy]]:
        for served in self._models:
            if served.text_model is not None:
                yield served.name, served.text_model.occupancy
