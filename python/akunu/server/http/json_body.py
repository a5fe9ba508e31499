"""JSON in and out: bodies of requests, and of answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from json.encoder import encode_basestring
from typing import Any, Final, NoReturn, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from akunu.server.http.errors import invalid
from akunu.server.http.json_words import kind_of

_QUICK_BYTES: Final = 256 << 10

Read = TypeVar("Read")


async def read_body(request: Request, read: Callable[[dict[str, Any]], Read]) -> Read:
    """Return what `read` makes of the JSON object that a request has; ApiError as `json_object`.

    A long body is read in a thread, so that other requests continue meanwhile.
    """
    body = await request.body()
    if len(body) <= _QUICK_BYTES:
        return read(_object(body))
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(None, lambda: read(_object(body)))


async def json_object(request: Request) -> dict[str, Any]:
    """Return the JSON object that a request has; ApiError for anything else."""
    return await read_body(request, lambda body: body)


async def json_value(request: Request) -> Any:
    """Return the JSON that a request has; ApiError for anything else."""
    return _value(await request.body())


def _object(body: bytes) -> dict[str, Any]:
    found = _value(body)
    if not isinstance(found, dict):
        raise invalid(None, f"the body must be a JSON object, not {kind_of(found)}", "invalid_json")
    return found


def _value(body: bytes) -> Any:
    try:
        return json.loads(body, parse_constant=_no_constant)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise invalid(None, f"the body is not JSON: {error}", "invalid_json") from None
    except ValueError:  # Python's limit
        raise invalid(None, "the body has a number of too many digits", "invalid_json") from None
    except RecursionError:
        raise invalid(None, "the body is nested too deeply", "invalid_json") from None


def _no_constant(name: str) -> NoReturn:
    raise invalid(None, f"the body is not JSON: it has {name}", "invalid_json")


def json_bytes(content: Any) -> bytes:
    """Return content as JSON. Half of a surrogate pair, which UTF-8 has not, is escaped."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode(errors="backslashreplace")


def json_string(text: str) -> bytes:
    """Return a text as JSON, as `json_bytes` does; without looking what it is.

    >>> json_string('"'), json_string("\\n")
    (b'"\\\\""', b'"\\\\n"')
    """
    return encode_basestring(text).encode(errors="backslashreplace")


class JsonResponse(Response):
    """An answer in JSON."""

    media_type = "application/json"

    def __init__(
        self, content: Any, status_code: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        """`content`: what json.dumps takes."""
        super().__init__(json_bytes(content), status_code, headers)
