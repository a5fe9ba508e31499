"""Which replica a conversation goes to: its home, as long as that has not much more to do.

Rendezvous hashing: every replica draws a number for the conversation, and the highest is its home.
Nothing is remembered, so all who route agree, and where a replica leaves, only its own
conversations move. A home that is busier than the others is passed over for the next highest
("consistent hashing with bounded loads", Mirrokni and others, 2016).

>>> order = by_preference("a conversation", {"x": 0, "y": 0, "z": 0})
>>> home, second = order[:2]
>>> by_preference("a conversation", {each: 0 for each in order[1:]})[0] == second
True
>>> by_preference("a conversation", {"x": 0, "y": 0, "z": 0, home: 9})[0] == second
True
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Final

# A replica gets no more than this many times the average number of requests. Above 1, since
# computing a prompt again on another replica costs more than a slightly larger batch on this one.
_SHARE: Final = 1.5


def by_preference(key: str, loads: Mapping[str, int]) -> list[str]:
    """Return replicas, the best one first.

    `key`: of the conversation; "": it has none, and the least loaded is best. `loads`: what each
    replica has under way.
    """
    drawn = sorted(loads, key=lambda replica: _draw(key, replica), reverse=True)
    if not key:
        return sorted(drawn, key=loads.__getitem__)
    most = math.ceil(_SHARE * (sum(loads.values()) + 1) / len(loads)) if loads else 0
    within = [replica for replica in drawn if loads[replica] < most]
    beyond = [replica for replica in drawn if loads[replica] >= most]
    return within + sorted(beyond, key=loads.__getitem__)


def _draw(key: str, replica: str) -> bytes:
    return hashlib.blake2b(f"{key}\0{replica}".encode(), digest_size=8).digest()
