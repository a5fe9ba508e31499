"""Stored responses: /v1/responses/{id}, its /input_items and /cancel."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from akunu.server.http.errors import invalid
from akunu.server.http.json_body import JsonResponse
from akunu.server.stored.background import backgrounds_of
from akunu.server.stored.items import Limit, Order, page_of
from akunu.server.stored.responses import StoredResponses

router = APIRouter(prefix="/responses", tags=["responses"])


@router.get("/{response_id}", summary="A stored response", response_model=None)
async def retrieve(
    request: Request,
    response_id: str,
    stream: bool = False,
    starting_after: Annotated[int, Query(ge=0)] | None = None,
) -> Response:
    """Return a response as it was answered, or as it is by now.

    `stream`: the events of a response in the background, those after number `starting_after`.
    """
    response = StoredResponses.of(request).find(response_id)["response"]
    if not stream:
        return JsonResponse(response)
    if not response.get("background"):
        raise invalid("stream", f"{response_id!r} is not in the background: it has no events")
    n_told = 0 if starting_after is None else starting_after + 1
    return await backgrounds_of(request).stream(request, response, n_told)


@router.post("/{response_id}/cancel", summary="Cancel a response", response_model=None)
async def cancel(request: Request, response_id: str) -> Response:
    """End a response in the background; one that is over stays as it is."""
    response = StoredResponses.of(request).find(response_id)["response"]
    if not response.get("background"):
        raise invalid(None, f"{response_id!r} is not in the background: it cannot be cancelled")
    return JsonResponse(await backgrounds_of(request).cancel(request, response))


@router.delete("/{response_id}", summary="Delete a stored response", response_model=None)
async def delete(request: Request, response_id: str) -> Response:
    """Delete a response; what continued it cannot be continued any more."""
    stored = StoredResponses.of(request)
    response = stored.find(response_id)["response"]
    if response.get("background"):
        await backgrounds_of(request).delete(request, response)
    stored.delete(response_id)
    return JsonResponse({"id": response_id, "object": "response", "deleted": True})


@router.get(
    "/{response_id}/input_items", summary="The input of a stored response", response_model=None
)
async def input_items(
    request: Request,
    response_id: str,
    after: str | None = None,
    limit: Limit = 20,
    order: Order = "desc",
) -> Response:
    """Return a page of the items that the request had as `input`."""
    items = StoredResponses.of(request).find(response_id)["input"]
    return JsonResponse(page_of(items, after=after, limit=limit, order=order))
