"""Models as Anthropic's clients list them, in pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, Final

from akunu.model import Model
from akunu.server.http.errors import invalid
from akunu.server.ollama.models import capabilities
from akunu.server.served_model import ServedModel

_MOST: Final = 1000
_USUAL: Final = 20


def models_page(models: Sequence[ServedModel], query: Mapping[str, str]) -> dict[str, Any]:
    """Return a page of the models; ApiError for a query that makes no sense.

    `query`: `limit`, `after_id` and `before_id`, as Anthropic has them; anything else is as if it
    were not there.
    """
    limit = _limit(query.get("limit", str(_USUAL)))
    names = [each.name for each in models]
    after, before = query.get("after_id"), query.get("before_id")
    if after is not None and before is not None:
        raise invalid("before_id", "after_id and before_id are set: use one of them")
    first = 0 if after is None else _place("after_id", after, names) + 1
    last = len(names) if before is None else _place("before_id", before, names)
    if before is None:
        found = models[first : first + limit]
        has_more = len(models) > first + limit
    else:
        found = models[max(0, last - limit) : last]
        has_more = last > limit
    return {
        "data": [model_info(each) for each in found],
        "has_more": has_more,
        "first_id": found[0].name if found else None,
        "last_id": found[-1].name if found else None,
    }


def model_info(served: ServedModel) -> dict[str, Any]:
    """Return what is known of a model: what it can do of one that is loaded."""
    model = served.text_model
    return {
        "type": "model",
        "id": served.name,
        "display_name": served.name,
        "created_at": datetime.fromtimestamp(served.created, timezone.utc).isoformat(),
        "lifecycle": "active",
        "line": None,
        "deprecated_at": None,
        "retires_at": None,
        "max_input_tokens": None if model is None else model.context,
        "max_tokens": None if model is None else model.context,
        "capabilities": None if model is None else _capabilities(model),
    }


def _capabilities(model: Model) -> dict[str, Any]:
    no, yes = {"supported": False}, {"supported": True}
    thinks = yes if "thinking" in capabilities(model) else no
    types = {"adaptive": thinks, "enabled": thinks, "disabled": yes, "between_tools": no}
    return {
        "batch": no,
        "citations": no,
        "code_execution": no,
        "context_management": no,
        "effort": {**no, "low": no, "medium": no, "high": no, "max": no},
        "image_input": yes if model.reads_images else no,
        "pdf_input": no,
        "server_tools": {**no, "code_execution": no, "web_search": no},
        "structured_outputs": yes,
        "thinking": {**thinks, "types": types},
    }


def _limit(text: str) -> int:
    limit = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    if not 1 <= limit <= _MOST:
        raise invalid("limit", f"limit is {text[:20]!r}; it must be a number from 1 to {_MOST}")
    return limit


def _place(name: str, model: str, names: Sequence[str]) -> int:
    if model not in names:
        raise invalid(name, f"{name} is {model[:100]!r}, which is not one of the models")
    return names.index(model)
