"""What a request leaves open: filled in from the model's file, and within the server's limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from akunu.common.checks import integer
from akunu.model import Model
from akunu.server.http.errors import invalid
from akunu.server.settings import ServerSettings


def with_limits(
    options: Mapping[str, Any], model: Model, settings: ServerSettings, names: Mapping[str, str]
) -> dict[str, Any]:
    """Return options with those that the model's authors recommend, and with a number of tokens.

    Raises ApiError for more tokens than the server allows: nothing is cut in silence.
    """
    defaults = dict(model.sampling_defaults)
    if "samplers" in options:  # an order of their own has no room for what it leaves out
        defaults = {}
    if options.get("penalize_prompt") is not False:  # which does not go with a shift
        defaults["context_overflow"] = settings.context_overflow
    found = {**defaults, **options}
    most = settings.most_tokens
    wanted = found.get("max_tokens")
    if wanted is not None and most is not None:
        field = names.get("max_tokens", "max_tokens")
        if integer("max_tokens", wanted, -1, None) == -1 or wanted > most:
            raise invalid(field, f"{field} is {wanted}; this server allows at most {most}")
    if wanted is None:
        found["max_tokens"] = settings.default_max_tokens or most
    return found
