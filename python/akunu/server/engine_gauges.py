"""Gauges of the engines of loaded models, read at each request for metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from akunu.model_facts import Occupancy
from akunu.server.served_model import ServedModel


class EngineGauges(Collector):
    """Gauges of each model that is loaded."""

    def __init__(self, models: Sequence[ServedModel]) -> None:
        """`models`: those of the server; they say themselves which are loaded."""
        self._models = models

    def collect(self) -> Iterator[Metric]:
        """Yield the gauges as they are now."""
        waiting = GaugeMetricFamily(
            "akunu_engine_waiting",
            "Requests that wait for the engine.",
            labels=["model"],
        )
        running = GaugeMetricFamily(
            "akunu_engine_running",
            "Requests that the engine computes: prompts, completions and logits.",
            labels=["model"],
        )
        pages = GaugeMetricFamily(
            "akunu_cache_pages",
            "Pages of the KV cache, by cache group and by use.",
            labels=["model", "kind", "state"],
        )
        disk = GaugeMetricFamily(
            "akunu_disk_cache_bytes",
            "Bytes of prefixes in the folder of `cache_dir`, and their limit.",
            labels=["model", "state"],
        )
        tokens = CounterMetricFamily(
            "akunu_disk_cache_tokens",
            "Tokens of prompts written to that folder and read from it.",
            labels=["model", "what"],
        )
        damaged = CounterMetricFamily(
            "akunu_disk_cache_damaged",
            "Damaged files in that folder.",
            labels=["model"],
        )
        for name, now in self._occupancies():
            if now.disk is not None:
                disk.add_metric([name, "in_use"], now.disk.bytes)
                disk.add_metric([name, "most"], now.disk.most_bytes)
                tokens.add_metric([name, "written"], now.disk.written)
                tokens.add_metric([name, "restored"], now.disk.restored)
                damaged.add_metric([name], now.disk.damaged)
            waiting.add_metric([name], now.waiting)
            running.add_metric([name], now.running)
            for each in now.cache:
                for state in ("in_use", "cached", "free"):
                    pages.add_metric([name, each.kind, state], getattr(each, state))
        yield from (waiting, running, pages, disk, tokens, damaged)

    def summary(self) -> dict[str, dict[str, Any]]:
        """Return the same for JSON, by model."""
        return {name: asdict(now) for name, now in self._occupancies()}

    def _occupancies(self) -> Iterator[tuple[str, Occupancy]]:
        for served in self._models:
            if served.text_model is not None:
                yield served.name, served.text_model.occupancy
