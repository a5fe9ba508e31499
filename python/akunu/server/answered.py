"""What a route of any dialect does: it reads a request, and answers it with texts, or a count."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from akunu.server.generation import Generation
from akunu.server.http.json_body import read_body
from akunu.server.journal.generation import JournalledGeneration
from akunu.server.journal.idempotency import KEY, LAST_EVENT, idempotency_of
from akunu.server.prompts import prompt_of
from akunu.server.settings import ServerSettings
from akunu.server.state import entry_of, state_of
from akunu.server.text_request import TextRequest

ToRequest = Callable[[Mapping[str, Any], ServerSettings], TextRequest]
"""What a body asks for; ApiError for values that make no sense or are not supported."""


async def answered(request: Request, to_request: ToRequest, *, can_go_on: bool = False) -> Response:
    """Return the answer to a request; `can_go_on`: it is journalled where that is requested."""
    settings = state_of(request).settings
    wanted = await read_body(request, lambda body: to_request(body, settings))
    return answer_to(request, wanted, can_go_on=can_go_on)


def answer_to(request: Request, wanted: TextRequest, *, can_go_on: bool = False) -> Response:
    """Return the answer to a request that was read; see `answered`."""
    state, entry = state_of(request), entry_of(request)
    journal = state.journal if can_go_on else None
    if journal is None:
        wanted.ignore(name for name in (KEY, LAST_EVENT) if name in request.headers)
    elif (named := idempotency_of(request, journal)) is not None:
        return JournalledGeneration(state, entry, wanted, named)
    return Generation(state, entry, wanted)


async def counted(request: Request, to_request: ToRequest) -> tuple[int, dict[str, str]]:
    """Return how many tokens a conversation's prompt has, and headers; ApiError as `answered`.

    Nothing is written; the prompt may be longer than the context.
    """
    state = state_of(request)
    wanted = await read_body(request, lambda body: to_request(body, state.settings))
    try:
        async with state.models.use(wanted.model) as (served, model):
            n = len(await prompt_of(model, wanted.fitted(served, model)))
    except Exception as error:
        raise wanted.failure(error) from error
    return n, wanted.headers
