"""Ray Serve's choice of a replica for a request: the home of its conversation."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from ray.serve.request_router import PendingRequest, ReplicaID, RequestRouter, RunningReplica

from akunu.ray.placement import by_preference


class ReplicaRouter(RequestRouter):  # type: ignore[misc]  # Ray's types are not looked at
    """Chooses by what a `Forwarded` request says of its conversation.

    Used from one event loop, that of the handle it belongs to; each handle counts for itself.
    """

    def initialize_state(self, **_: Any) -> None:
        """Begin without anything under way; called by Ray Serve."""
        self._under_way: defaultdict[str, set[str]] = defaultdict(set)  # ids of requests

    async def choose_replicas(
        self,
        candidate_replicas: list[RunningReplica],
        pending_request: PendingRequest | None = None,
    ) -> list[list[RunningReplica]]:
        """Return replicas one by one, the best first; a full one is passed over by Ray Serve."""
        replicas = {each.replica_id.unique_id: each for each in candidate_replicas}
        if pending_request is None:
            return [candidate_replicas]
        pending_request.routing_context.should_backoff = True  # between rounds without success
        asked = pending_request.args[0] if pending_request.args else None
        avoided = getattr(asked, "avoided", ())
        allowed = [name for name in replicas if name not in avoided]
        loads = {name: self._load(replicas[name].replica_id) for name in allowed}
        chosen = by_preference(getattr(asked, "conversation", ""), loads)
        return [[replicas[name]] for name in chosen]

    def on_request_routed(
        self, pending_request: PendingRequest, replica_id: ReplicaID, result: Any
    ) -> None:
        """Count a request that a replica took; called by Ray Serve."""
        request_id = pending_request.metadata.internal_request_id
        self._under_way[replica_id.unique_id].add(request_id)

    def on_request_completed(self, replica_id: ReplicaID, internal_request_id: str) -> None:
        """Count one that is over, however it ended; called by Ray Serve."""
        requests = self._under_way[replica_id.unique_id]
        requests.discard(internal_request_id)
        if not requests:
            del self._under_way[replica_id.unique_id]

    def _load(self, replica_id: ReplicaID) -> int:
        # Ray Serve's number has what others sent, and what is being sent, but is soon forgotten.
        own = len(self._under_way.get(replica_id.unique_id, ()))
        return max(own, self.replica_queue_len_cache.get(replica_id) or 0)
