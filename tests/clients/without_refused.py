"""A plugin of pytest: what akunu refuses by name is left out of a request, which is sent again.

The tests of OpenAI's and Anthropic's clients send every field that there is at once. A test that
passes without some is noted as such: it counts beside the whole test, which the refusal fails.
The client's package is named by the variable REFUSED_BY_PACKAGE.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from typing import Any

import pytest

_PACKAGE = importlib.import_module(os.environ["REFUSED_BY_PACKAGE"])
_left_out: dict[str, str] = {}  # fields that the running test's request lost, and why


def _without(error: Any, options: Any) -> Any:
    """The options of a request without the field that the error names; raises it for no such."""
    told = error.body.get("error", error.body)
    body = options.json_data
    name = told.get("param")
    if not isinstance(body, dict) or name not in body:
        raise error
    _left_out[name] = told["message"]
    kept = {key: value for key, value in body.items() if key != name}
    return options.model_copy(update={"json_data": kept})


def _patch() -> None:
    base = importlib.import_module(f"{_PACKAGE.__name__}._base_client")
    refusal = _PACKAGE.BadRequestError
    once, once_async = base.SyncAPIClient.request, base.AsyncAPIClient.request

    def request(self: Any, cast_to: Any, options: Any, **more: Any) -> Any:
        while True:
            try:
                return once(self, cast_to, options, **more)
            except refusal as error:
                options = _without(error, options)

    async def request_async(self: Any, cast_to: Any, options: Any, **more: Any) -> Any:
        while True:
            try:
                return await once_async(self, cast_to, options, **more)
            except refusal as error:
                options = _without(error, options)

    base.SyncAPIClient.request = request
    base.AsyncAPIClient.request = request_async


_patch()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    _left_out.clear()
    yield
    for name, why in _left_out.items():
        item.user_properties.append((name, why))
