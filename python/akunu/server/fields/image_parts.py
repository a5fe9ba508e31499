"""Images as the server's dialects have them, in the form that `Model.chat` takes.

>>> of_base64("iVBORw0K")
{'type': 'image', 'image': 'data:image/*;base64,iVBORw0K'}
"""

from __future__ import annotations

from typing import Any, Final

from akunu.server.http.errors import invalid, unsupported
from akunu.server.http.json_words import as_json, kind_of

_WHY: Final = (
    "the server does not fetch images, because a message could make it send requests; send the "
    "image itself, in base64"
)


def of_url(url: Any, field: str, where: str) -> dict[str, Any]:
    """Return the part of an image that a URL is; ApiError for one that has no data.

    `field`: of the request. `where`: the place of the URL in it.
    """
    if not isinstance(url, str):
        raise invalid(field, f"{where} must be a text, got {kind_of(url)}")
    if url[:5].lower() != "data:":
        raise unsupported(field, f"{where} is {as_json(url)}, which is not a data: URL: {_WHY}")
    return {"type": "image", "image": url}


def of_base64(data: str) -> dict[str, Any]:
    """Return the part of an image whose file this is; what it is, its first bytes say."""
    return {"type": "image", "image": f"data:image/*;base64,{data}"}


def joined_texts(parts: list[dict[str, Any]]) -> Any:
    """Return the content that parts make: one text, or a list of them where there are images."""
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return parts


def not_fetched(field: str, where: str) -> Exception:
    """Return the error of an image that is somewhere else."""
    return unsupported(field, f"{where}: {_WHY}")
