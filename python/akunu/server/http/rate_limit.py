"""This many requests per minute for each key or address: a bucket of tokens for each.

>>> limit = RateLimit(2)
>>> [limit.seconds_to_wait("a", now=0.0) for _ in range(3)], limit.seconds_to_wait("a", now=30.0)
([0, 0, 30], 0)
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

_MOST_BUCKETS = 10_000  # then full ones are forgotten, which changes nothing


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled: float


class RateLimit:
    """Buckets that fill steadily; each request takes a token."""

    def __init__(self, per_minute: int) -> None:
        """`per_minute`: 0 means no limit."""
        self._most = float(per_minute)
        self._per_second = per_minute / 60
        self._buckets: dict[str, _Bucket] = {}

    def seconds_to_wait(self, who: str, now: float | None = None) -> int:
        """Take a token and return 0, or return when there is one again."""
        if not self._most:
            return 0
        now = time.monotonic() if now is None else now
        bucket = self._buckets.get(who)
        if bucket is None:
            if len(self._buckets) >= _MOST_BUCKETS:
                self._forget(now)
            bucket = self._buckets[who] = _Bucket(self._most, now)
        bucket.tokens = self._tokens(bucket, now)
        bucket.filled = now
        if bucket.tokens >= 1:
            bucket.tokens -= 1
            return 0
        return math.ceil((1 - bucket.tokens) / self._per_second)

    def _tokens(self, bucket: _Bucket, now: float) -> float:
        return min(self._most, bucket.tokens + (now - bucket.filled) * self._per_second)

    def _forget(self, now: float) -> None:
        full = [who for who, each in self._buckets.items() if self._tokens(each, now) >= self._most]
        for who in full:
            del self._buckets[who]
