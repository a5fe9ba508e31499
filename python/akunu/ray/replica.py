"""One replica: the application of `akunu serve` with its own models; requests come through Ray."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from akunu.ray.exchange import Part, parts_of
from akunu.ray.forwarded import Forwarded
from akunu.server.app import create_app
from akunu.server.models import ServedModels
from akunu.server.run import prepare_log
from akunu.server.settings import ServerSettings


class Replica:
    """A deployment of Ray Serve. It is there when its first model is loaded."""

    async def __init__(  # type: ignore[misc]  # Ray Serve awaits it
        self, settings: ServerSettings, sources: Mapping[str, str]
    ) -> None:
        """`settings`: without what concerns clients, whom the front has let in."""
        from ray import serve

        prepare_log()
        self._name = serve.get_replica_context().replica_id.unique_id
        self._served = ServedModels.of(settings, sources)
        self._app = create_app(settings, self._served, is_guarded=False)
        self._lifespan = self._app.router.lifespan_context(self._app)
        await self._lifespan.__aenter__()
        await self._served.load(None)

    async def check_health(self) -> None:
        """Raise where it cannot answer; asked by Ray Serve every now and then."""
        if not self._app.state.akunu.is_ready:
            raise RuntimeError("the application is not ready")

    async def answer(self, request: Forwarded) -> AsyncIterator[str | Part]:
        """Answer: first the name of this replica, then the parts as they come.

        A caller that cancels this is a client that went away.
        """
        yield self._name
        async for part in parts_of(self._app, request):
            yield part

    async def ask(self, request: Forwarded) -> tuple[str, int, bytes]:
        """Return this replica's name, the status and the body: for requests that go to all."""
        parts = [part async for part in parts_of(self._app, request)]
        status = next(part[0] for part in parts if isinstance(part, tuple))
        return self._name, status, b"".join(part for part in parts if isinstance(part, bytes))

    async def __del__(self) -> None:
        """Close the models; Ray Serve calls this when nothing is under way any more."""
        await self._lifespan.__aexit__(None, None, None)
