"""/v1/conversations: begin, look at, change and delete conversations and their items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from akunu.server.fields.table import Field, checked, honoured, ignored_header, read, table_of
from akunu.server.http.errors import ApiError, invalid
from akunu.server.http.json_body import JsonResponse, json_object
from akunu.server.openai.responses_input import messages_of
from akunu.server.routes.described import body_of
from akunu.server.stored.conversations import StoredConversations
from akunu.server.stored.items import Limit, Order, as_items, page_of

router = APIRouter(prefix="/conversations", tags=["conversations"])
_MOST_ITEMS: Final = 20  # of a request, as OpenAI has it


def _items(name: str, value: Any) -> Mapping[str, Any]:
    given = checked(name, value, list)
    if len(given) > _MOST_ITEMS:
        raise invalid(name, f"{name} has {len(given)} items; a request has at most {_MOST_ITEMS}")
    if given:
        try:
            messages_of(None, given)
        except ApiError as error:
            raise invalid(name, error.message.replace("input[", "items["), error.code) from None
    return {name: as_items(given)}


def _metadata(name: str, value: Any) -> Mapping[str, Any]:
    return {name: checked(name, value, dict)}


_METADATA: Final = honoured("metadata", "object", _metadata, "texts that the conversation has")
_ITEMS: Final = honoured("items", "array", _items, "as in the input of a response; at most 20")
CONVERSATION_FIELDS: Final[Mapping[str, Field]] = table_of([_ITEMS, _METADATA])
UPDATE_FIELDS: Final[Mapping[str, Field]] = table_of([_METADATA])
ITEMS_FIELDS: Final[Mapping[str, Field]] = table_of([_ITEMS])


@router.post(
    "",
    summary="Begin a conversation",
    response_model=None,
    openapi_extra=body_of(CONVERSATION_FIELDS),
)
async def create(request: Request) -> Response:
    """Store a conversation, which responses continue with `conversation`."""
    body = await json_object(request) if await request.body() else {}
    found = read(CONVERSATION_FIELDS, body)
    options = found.options
    stored = StoredConversations.of(request)
    told = stored.create(options.get("items", []), options.get("metadata", {}))
    return JsonResponse(told, headers=ignored_header(found.ignored))


@router.get("/{conversation_id}", summary="A conversation", response_model=None)
async def retrieve(request: Request, conversation_id: str) -> Response:
    """Return a conversation without its items."""
    return JsonResponse(StoredConversations.of(request).find(conversation_id)[0])


@router.post(
    "/{conversation_id}",
    summary="Change a conversation",
    response_model=None,
    openapi_extra=body_of(UPDATE_FIELDS, required=["metadata"]),
)
async def update(request: Request, conversation_id: str) -> Response:
    """Give a conversation other metadata."""
    found = read(UPDATE_FIELDS, await json_object(request))
    metadata = found.options.get("metadata", {})
    told = StoredConversations.of(request).update(conversation_id, metadata)
    return JsonResponse(told, headers=ignored_header(found.ignored))


@router.delete("/{conversation_id}", summary="Delete a conversation", response_model=None)
async def delete(request: Request, conversation_id: str) -> Response:
    """Delete a conversation and its items; responses in it stay."""
    StoredConversations.of(request).delete(conversation_id)
    told = {"id": conversation_id, "object": "conversation.deleted", "deleted": True}
    return JsonResponse(told)


@router.post(
    "/{conversation_id}/items",
    summary="Add items to a conversation",
    response_model=None,
    openapi_extra=body_of(ITEMS_FIELDS, required=["items"]),
)
async def add_items(request: Request, conversation_id: str) -> Response:
    """Add items at the end; returns them with their ids."""
    found = read(ITEMS_FIELDS, await json_object(request))
    if not (items := found.options.get("items")):
        raise invalid("items", "items is missing or empty", "missing_required_parameter")
    StoredConversations.of(request).add(conversation_id, items)
    page = page_of(items, after=None, limit=_MOST_ITEMS, order="asc")
    return JsonResponse(page, headers=ignored_header(found.ignored))


@router.get("/{conversation_id}/items", summary="Items of a conversation", response_model=None)
async def list_items(
    request: Request,
    conversation_id: str,
    after: str | None = None,
    limit: Limit = 20,
    order: Order = "desc",
) -> Response:
    """Return a page of items, the newest first."""
    _, items = StoredConversations.of(request).find(conversation_id)
    return JsonResponse(page_of(items, after=after, limit=limit, order=order))


@router.get("/{conversation_id}/items/{item_id}", summary="An item", response_model=None)
async def retrieve_item(request: Request, conversation_id: str, item_id: str) -> Response:
    """Return one item."""
    return JsonResponse(StoredConversations.of(request).item(conversation_id, item_id))


@router.delete("/{conversation_id}/items/{item_id}", summary="Delete an item", response_model=None)
async def delete_item(request: Request, conversation_id: str, item_id: str) -> Response:
    """Delete one item; returns the conversation."""
    return JsonResponse(StoredConversations.of(request).drop(conversation_id, item_id))
