"""GET and DELETE /v1/responses/{id}, and GET /v1/responses/{id}/input_items."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from akunu.server.http.json_body import JsonResponse
from akunu.server.stored.items import Limit, Order, page_of
from akunu.server.stored.responses import StoredResponses

router = APIRouter(prefix="/responses", tags=["responses"])


@router.get("/{response_id}", summary="A stored response", response_model=None)
async def retrieve(request: Request, response_id: str) -> Response:
    """Return a response as it was answered."""
    return JsonResponse(StoredResponses.of(request).find(response_id)["response"])


@router.delete("/{response_id}", summary="Delete a stored response", response_model=None)
async def delete(request: Request, response_id: str) -> Response:
    """Delete a response; what continued it cannot be continued any more."""
    StoredResponses.of(request).delete(response_id)
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
