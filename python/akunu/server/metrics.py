"""What the server counts: requests, tokens, times. In Prometheus' format, and as JSON."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from akunu.server.engine_gauges import EngineGauges
from akunu.server.http.access_log import AccessEntry
from akunu.server.models import ServedModels
from akunu.text.completion import Completion

if TYPE_CHECKING:
    from akunu.server.http.errors import ApiError
    from akunu.text.async_text_stream import AsyncTextStream

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_FIRST: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_BETWEEN: Final = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1, 2)
_WHOLE: Final = (0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


class Metrics:
    """The counters of one application; nothing of them is global."""

    def __init__(self, models: ServedModels | None = None) -> None:
        """Begin at zero; what the engines of `models` are busy with, they say themselves."""
        self.registry = CollectorRegistry()
        self._engines = EngineGauges(models.all if models else [])
        self.registry.register(self._engines)
        self._began = time.monotonic()
        model = ["model"]
        self.requests = self._counter(
            "requests", "Requests answered, by their route without /v1.", ["route", "code"]
        )
        self.prompt_tokens = self._counter("prompt_tokens", "Tokens of prompts.", model)
        self.cached_tokens = self._counter(
            "prompt_tokens_cached", "Tokens of prompts found in the KV cache.", model
        )
        self.prefix_hits = self._counter(
            "prefix_hits", "Requests whose prompt had a prefix in the KV cache.", model
        )
        self.prefix_ends = self._counter(
            "prefix_ends",
            "Requests by the reason why no longer prefix was in the KV cache.",
            ["model", "reason"],
        )
        self.completion_tokens = self._counter("completion_tokens", "Tokens generated.", model)
        self.texts_ended = self._counter(
            "texts", "Completions by the reason of their end.", ["model", "reason"]
        )
        self.audio_seconds = self._counter(
            "audio_seconds", "Seconds of audio that was transcribed or translated.", model
        )
        self.first = self._histogram(
            "time_to_first_token_seconds", "Seconds from a request to its first token.", _FIRST
        )
        self.between = self._histogram(
            "time_between_tokens_seconds",
            "Seconds between the tokens of a completion, on average.",
            _BETWEEN,
        )
        self.whole = Histogram(
            "akunu_request_seconds",
            "Seconds from a request to the end of its answer.",
            ["route"],
            registry=self.registry,
            buckets=_WHOLE,
        )
        self.waiting = Gauge(
            "akunu_texts_waiting",
            "Requests without a token yet: waiting, or computing their prompt.",
            model,
            registry=self.registry,
        )
        self.running = Gauge(
            "akunu_texts_running",
            "Requests that are generating tokens.",
            model,
            registry=self.registry,
        )

    def text(self) -> bytes:
        """Return all of it as Prometheus reads it."""
        found: bytes = generate_latest(self.registry)
        return found

    def summary(self) -> dict[str, Any]:
        """Return totals, and those of each model."""
        models: dict[str, dict[str, Any]] = {}
        names = {
            "akunu_prompt_tokens_total": "prompt_tokens",
            "akunu_prompt_tokens_cached_total": "cached_tokens",
            "akunu_prefix_hits_total": "prefix_hits",
            "akunu_completion_tokens_total": "completion_tokens",
            "akunu_audio_seconds_total": "audio_seconds",
            "akunu_texts_waiting": "waiting",
            "akunu_texts_running": "running",
        }
        n_requests = 0
        for family in self.registry.collect():
            for sample in family.samples:
                if sample.name == "akunu_requests_total":
                    n_requests += int(sample.value)
                elif sample.name == "akunu_prefix_ends_total":
                    ends = models.setdefault(sample.labels["model"], {})
                    reasons = ends.setdefault("prefix_ends", {})
                    reasons[sample.labels["reason"]] = int(sample.value)
                elif sample.name in names:
                    of_model = models.setdefault(sample.labels["model"], {})
                    of_model[names[sample.name]] = int(sample.value)
        for name, now in self._engines.summary().items():
            models.setdefault(name, {})["engine"] = now
        totals = {
            f"total_{name}": sum(each.get(name, 0) for each in models.values())
            for name in ("prompt_tokens", "completion_tokens")
        }
        return {
            "uptime_seconds": round(time.monotonic() - self._began, 3),
            "total_requests": n_requests,
            **totals,
            "models": models,
        }

    def answered(self, entry: AccessEntry) -> None:
        """Count a request that is over."""
        route = getattr(entry.scope.get("route"), "path", "other").removeprefix("/v1")
        self.requests.labels(route, str(entry.status)).inc()
        self.whole.labels(route).observe(time.monotonic() - entry.began)

    def _counter(self, name: str, help: str, labels: Sequence[str]) -> Counter:
        return Counter(f"akunu_{name}", help, labels, registry=self.registry)

    def _histogram(self, name: str, help: str, buckets: Sequence[float]) -> Histogram:
        return Histogram(
            f"akunu_{name}", help, ["model"], registry=self.registry, buckets=tuple(buckets)
        )


class Observer:
    """Counts the texts of one request, and notes them in its line of the log."""

    def __init__(self, metrics: Metrics, entry: AccessEntry) -> None:
        """`entry`: the line."""
        self._metrics = metrics
        self._entry = entry
        self._model = ""
        self._waiting: set[int] = set()  # ids of streams
        self._n_running = 0

    def began(self, model: str, streams: Sequence[AsyncTextStream]) -> None:
        """Count texts that wait."""
        self._model = self._entry.model = model
        self._waiting = {id(stream) for stream in streams}
        self._metrics.waiting.labels(model).inc(len(streams))

    def part(self, stream: AsyncTextStream) -> None:
        """Count a text that has begun; all its later parts cost nothing."""
        if not self._waiting or id(stream) not in self._waiting:
            return
        self._waiting.discard(id(stream))
        self._n_running += 1
        self._metrics.waiting.labels(self._model).dec()
        self._metrics.running.labels(self._model).inc()
        since = time.monotonic() - self._entry.began
        self._metrics.first.labels(self._model).observe(since)

    def ended(self, replies: Sequence[Completion]) -> None:
        """Count the tokens of all texts."""
        metrics, model, entry = self._metrics, self._model, self._entry
        metrics.waiting.labels(model).dec(len(self._waiting))
        metrics.running.labels(model).dec(self._n_running)
        self._waiting, self._n_running = set(), 0
        for reply in replies:
            metrics.texts_ended.labels(model, reply.finish_reason).inc()
            metrics.completion_tokens.labels(model).inc(reply.completion_tokens)
            entry.completion_tokens += reply.completion_tokens
            if reply.completion_tokens > 1:
                steps = reply.completion_tokens - 1
                metrics.between.labels(model).observe(reply.completion_seconds / steps)
        if replies:
            first = replies[0]
            metrics.prompt_tokens.labels(model).inc(first.prompt_tokens)
            metrics.cached_tokens.labels(model).inc(first.cached_tokens)
            metrics.prefix_hits.labels(model).inc(first.cached_tokens > 0)
            if first.prefix_end:
                metrics.prefix_ends.labels(model, first.prefix_end).inc()
            entry.prompt_tokens = first.prompt_tokens
            entry.cached_tokens = first.cached_tokens
            entry.prefix_end = first.prefix_end
            if len(replies) == 1:
                entry.finish_reason = first.finish_reason
            else:
                entry.finish_reason = ",".join(sorted({each.finish_reason for each in replies}))

    def failed(self, told: ApiError, error: BaseException) -> None:
        """Note why."""
        self._entry.error = told.logged
