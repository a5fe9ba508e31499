"""In what form a chat template wants what messages hold, found by rendering small conversations.

The same conversation is spelled in several ways: arguments of a call as an object or as JSON text,
content as a text or as a list of parts, no content as None or as "". Most templates take one of the
two and write nonsense for the other ("{\\"city\\": ...}" within quotes once more), or fail.

>>> from akunu.templates.chat_template import ChatTemplate
>>> template = ChatTemplate("{% for m in messages %}{{ m.role }}: {{ m.content }} {% endfor %}")
>>> template.render([{"role": "developer", "content": [{"type": "text", "text": "Hello"}]}])
'system: Hello '
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from functools import cached_property
from typing import Any, Final

from akunu.errors import ArgumentError
from akunu.templates.messages import ImagePart
from akunu.templates.turn_order import TemplateTurns
from akunu.tools.cut_arguments import arguments_so_far

Conversation = list[dict[str, Any]]
Render = Callable[[Conversation, "list[dict[str, Any]] | None"], str | None]

_NAME: Final = "akunu_probe"
_ARGUMENTS: Final = {"akunu_key": "akunu value"}
_ARGUMENTS_AS_JSON: Final = re.compile(r'"akunu_key"\s*:\s*"akunu value"')
_TEXT: Final = "akunu text"
_REASONING: Final = "akunu reasoning"
_SHORT_ID: Final = "abcdefghi"
_LONG_ID: Final = "call_0123456789abcdef01234567"
_HELLO: Final = {"role": "user", "content": "Hello"}
_TOOL: Final = {
    "type": "function",
    "function": {
        "name": _NAME,
        "description": "Nothing.",
        "parameters": {
            "type": "object",
            "properties": {"other": {"type": "string", "description": "Nothing."}},
            "required": ["other"],
        },
    },
}
_ABSENT: Final = object()
_ALNUM: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class TemplateHabits:
    """What one template wants; asked for as it is needed, and remembered."""

    def __init__(self, source: str, render: Render) -> None:
        """`render` renders messages and tools, and returns None where the template raises."""
        self._source = source
        self._render = render
        self._takes_parts: dict[str, bool] = {}
        self._turns = TemplateTurns(self._render_anyhow, self._answered_call)

    def fitted(self, messages: Conversation) -> Conversation:
        """Return messages, as `messages.checked` returns them, in the form that is wanted.

        Raises ArgumentError for arguments that are no JSON of an object where only that will do.
        """
        fitted = [dict(message) for message in messages]
        for index, message in enumerate(fitted):
            if message["role"] == "developer" and not self.knows_developer:
                message["role"] = "system"
            if "tool_calls" in message:
                self._fit_calls(message, f"messages[{index}]")
        if any(_is_result_with_image(each) for each in fitted) and not self.shows_result_images:
            fitted = _with_images_behind_results(fitted)
        fitted = self._turns.fitted(fitted)
        for message in fitted:
            self._fit_content(message)
        if any("tool_calls" in message or message["role"] == "tool" for message in fitted):
            self._fit_ids(fitted)
        for message in fitted:
            if message["role"] == "assistant" and "reasoning_content" in message:
                self._fit_reasoning(message)
        return fitted

    # --- what trial renderings show --------------------------------------------------------------

    @property
    def takes_objects(self) -> bool:
        """Whether the arguments of a call may be a dict."""
        return self._calls[0]

    @property
    def takes_json(self) -> bool:
        """Whether they may be a text, and come out as the same dict would."""
        return self._calls[1]

    @property
    def shows_calls(self) -> bool:
        """Whether a call in a message is rendered at all."""
        return self.takes_objects or self.takes_json

    @cached_property
    def leaves_calls_out(self) -> bool:
        """Whether a reply with a call is rendered without it, and nothing says so."""
        called = [
            _call(arguments, content, _SHORT_ID)
            for content in ("", None)
            for arguments in (_ARGUMENTS, json.dumps(_ARGUMENTS))
        ]
        replies = self._all_rendered([each[:2] for each in called])
        with_results = self._all_rendered(called)  # some show a call next to its result only
        is_shown = any("akunu_key" in each for each in (*replies, *with_results))
        return bool(replies) and not is_shown and not any(_SHORT_ID in each for each in replies)

    def _all_rendered(self, conversations: list[Conversation]) -> list[str]:
        """Return what the template makes of these, with and without tools, but for errors."""
        tried = [self._render(each, tools) for each in conversations for tools in ([_TOOL], None)]
        return [shown for shown in tried if shown is not None]

    @cached_property
    def wants_short_ids(self) -> bool:
        """Whether ids of calls must have nine letters or digits, as Mistral's."""
        if not self.shows_calls:
            return False
        content, tools = self._calls[2], self._calls[3]
        arguments: Any = _ARGUMENTS if self.takes_objects else json.dumps(_ARGUMENTS)
        return self._render(_call(arguments, content, _LONG_ID), tools) is None

    @cached_property
    def knows_developer(self) -> bool:
        """Whether the template speaks of the role and shows what it says."""
        if "developer" not in self._source:
            return False
        shown = self._render([{"role": "developer", "content": _TEXT}, _HELLO], None)
        return shown is not None and _TEXT in shown

    @cached_property
    def no_tools(self) -> list[dict[str, Any]] | None:
        """What stands for no tools: None, or an empty list where the template goes through it."""
        refuses = self._render([_HELLO], None) is None
        return [] if refuses and self._render([_HELLO], []) is not None else None

    def takes_parts(self, role: str) -> bool:
        """Whether content of a role may be a list of parts, and comes out as the text would."""
        if role not in self._takes_parts:
            whole, one, two = (
                self._rendered(role, content)
                for content in (_TEXT, [_part(_TEXT)], [_part("first."), _part("second.")])
            )
            self._takes_parts[role] = (
                whole is not None
                and one == whole
                and two is not None
                and "first." in two
                and "second." in two
            )
        return self._takes_parts[role]

    @cached_property
    def shows_result_images(self) -> bool:
        """Whether the result of a call may have an image."""
        parts = [_part(_TEXT)]
        contents = ([ImagePart(), *parts], parts, _TEXT)
        with_image, without, as_text = (self._rendered("tool", content) for content in contents)
        if None in (with_image, without, as_text) or with_image == without:
            return False
        spelled = "['\"]type['\"]"  # in a list that is written as it is
        return len(re.findall(spelled, str(with_image))) == len(re.findall(spelled, str(as_text)))

    @cached_property
    def _calls(self) -> tuple[bool, bool, object, list[dict[str, Any]] | None]:
        """Which forms of arguments are right, and with which content and tools that was found."""
        for content in ("", None, _ABSENT):
            for tools in ([_TOOL], None):
                as_object = self._render(_call(_ARGUMENTS, content, _SHORT_ID), tools)
                text = json.dumps(_ARGUMENTS)
                as_text = self._render(_call(text, content, _SHORT_ID), tools)
                takes_objects = _has_arguments(as_object)
                takes_json = _has_arguments(as_text) and (not takes_objects or as_text == as_object)
                if takes_objects or takes_json:
                    return takes_objects, takes_json, content, tools
        return False, False, "", None

    @cached_property
    def _empty_contents(self) -> list[object]:
        """What may stand next to a call in place of content; the better first."""
        tools = self._calls[3]
        arguments: Any = _ARGUMENTS if self.takes_objects else json.dumps(_ARGUMENTS)
        if not self.shows_calls:
            return [""]
        found = []
        for content in ("", None, _ABSENT):
            shown = self._render(_call(arguments, content, _SHORT_ID), tools)
            if _has_arguments(shown) and shown is not None and "None" not in shown:
                found.append(content)
        return found or [""]

    @cached_property
    def _reasoning_as_part(self) -> bool:
        """Whether reasoning is a part of the content (Mistral) instead of a key next to it."""
        message = {"role": "assistant", "content": _TEXT, "reasoning_content": _REASONING}
        names = dict.fromkeys(("thinking", "reasoning", "thought"), _REASONING)
        beside = self._render([_HELLO, {**message, **names}], None)
        if beside is None or _REASONING in beside:
            return False
        within = self._render([_HELLO, _with_reasoning_part(message)], None)
        if within is None or "'thinking'" in within or '"thinking"' in within:
            return False  # the list itself, spelled out
        return _REASONING in within and _TEXT in within

    @cached_property
    def _takes_reasoning_with_content_and_call(self) -> bool:
        """Whether a message may have all three; gpt-oss's template refuses that."""
        arguments: Any = _ARGUMENTS if self.takes_objects else json.dumps(_ARGUMENTS)
        conversation = _call(arguments, _TEXT, _SHORT_ID)
        if self._render(conversation, self._calls[3]) is None:
            return True  # it is something else
        conversation[1].update(thinking=_REASONING, reasoning_content=_REASONING)
        return self._render(conversation, self._calls[3]) is not None

    def _render_anyhow(self, messages: Conversation) -> str | None:
        """Return a prompt without tools, or with one where the template wants some."""
        shown = self._render(messages, None)
        return self._render(messages, [_TOOL]) if shown is None else shown

    def _answered_call(self) -> Conversation | None:
        """Return a conversation that ends with the result of a call; None: it has no calls."""
        if not self.shows_calls:
            return None
        arguments: Any = _ARGUMENTS if self.takes_objects else json.dumps(_ARGUMENTS)
        return _call(arguments, self._empty_contents[0], _SHORT_ID)

    def _rendered(self, role: str, content: object) -> str | None:
        message = {"role": role, "content": content}
        if role in ("system", "developer"):
            return self._render([message, _HELLO], None)
        if role in ("tool", "function"):
            arguments: Any = _ARGUMENTS if self.takes_objects else json.dumps(_ARGUMENTS)
            conversation = _call(arguments, self._empty_contents[0], _SHORT_ID)
            conversation[2]["content"] = content
            return self._render(conversation, self._calls[3])
        if role == "assistant":
            return self._render([_HELLO, message, _HELLO], None)
        return self._render([message], None)

    # --- what is made of it ----------------------------------------------------------------------

    def _fit_content(self, message: dict[str, Any]) -> None:
        content = message.get("content")
        if isinstance(content, list) and any(isinstance(part, ImagePart) for part in content):
            return  # whether the template knows images is seen from what it renders
        if isinstance(content, list):
            texts = [part["text"] for part in content]
            if len(texts) == 1 or not self.takes_parts(message["role"]):
                message["content"] = "\n".join(texts)
        elif not content and "tool_calls" in message:
            given = content if "content" in message else _ABSENT
            allowed = self._empty_contents
            fitting = given if given in allowed else allowed[0]
            message.pop("content", None)
            if fitting is not _ABSENT:
                message["content"] = fitting

    def _fit_calls(self, message: dict[str, Any], where: str) -> None:
        calls = []
        for index, call in enumerate(message["tool_calls"]):
            place = f"{where}['tool_calls'][{index}]['function']['arguments']"
            arguments = call["function"]["arguments"]
            if isinstance(arguments, str) and not self.takes_json:
                arguments = _object_of(arguments, place)
            elif isinstance(arguments, dict) and self.takes_json and not self.takes_objects:
                arguments = json.dumps(arguments, ensure_ascii=False)
            calls.append({**call, "function": {**call["function"], "arguments": arguments}})
        message["tool_calls"] = calls

    def _fit_ids(self, messages: Conversation) -> None:
        """Give calls and results matching ids, and results the names of the called functions."""
        names: dict[str, str] = {}
        waiting: list[str] = []
        count = 0
        for message in messages:
            if "tool_calls" in message:
                waiting = []
                for call in message["tool_calls"]:
                    name = call["function"]["name"]
                    identifier = call.setdefault("id", f"functions.{name}:{count}")
                    names[identifier] = name
                    waiting.append(identifier)
                    call["id"] = self._fitting_id(identifier)
                    count += 1
            elif message["role"] == "tool":
                identifier = message.get("tool_call_id")
                if identifier is None and waiting:  # results come in the order of their calls
                    identifier = waiting[0]
                if isinstance(identifier, str):
                    waiting = [other for other in waiting if other != identifier]
                    message["tool_call_id"] = self._fitting_id(identifier)
                    if identifier in names:
                        message.setdefault("name", names[identifier])

    def _fitting_id(self, identifier: str) -> str:
        if not self.wants_short_ids or re.fullmatch("[A-Za-z0-9]{9}", identifier):
            return identifier
        number = int.from_bytes(hashlib.sha256(identifier.encode()).digest(), "big")
        return "".join([_ALNUM[number // 62**place % 62] for place in range(9)])

    def _fit_reasoning(self, message: dict[str, Any]) -> None:
        if "tool_calls" in message and message.get("content"):
            if not self._takes_reasoning_with_content_and_call:
                for name in ("thinking", "reasoning_content", "reasoning", "thought"):
                    message.pop(name, None)
        elif isinstance(message.get("content"), str) and self._reasoning_as_part:
            message["content"] = _with_reasoning_part(message)["content"]


def _part(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _is_result_with_image(message: dict[str, Any]) -> bool:
    content = message.get("content")
    return message["role"] == "tool" and isinstance(content, list) and any(map(_is_image, content))


def _is_image(part: object) -> bool:
    return isinstance(part, ImagePart)


def _with_images_behind_results(messages: Conversation) -> Conversation:
    """Return messages in which a user shows the images of results, after all of one turn."""
    found: Conversation = []
    images: list[Any] = []
    for message in [*messages, None]:
        if images and (message is None or message["role"] != "tool"):
            found.append({"role": "user", "content": images})
            images = []
        if message is not None and _is_result_with_image(message):
            images = [*images, *filter(_is_image, message["content"])]
            texts = [part for part in message["content"] if not _is_image(part)]
            message = {**message, "content": texts or "(an image, which follows)"}
        if message is not None:
            found.append(message)
    return found


def _with_reasoning_part(message: dict[str, Any]) -> dict[str, Any]:
    thought = {"type": "thinking", "thinking": message["reasoning_content"]}
    return {**message, "content": [thought, _part(message["content"])]}


def _call(arguments: object, content: object, identifier: str) -> Conversation:
    """Return a question, a call and its result."""
    function = {"name": _NAME, "arguments": arguments}
    call: dict[str, Any] = {
        "role": "assistant",
        "tool_calls": [{"id": identifier, "type": "function", "function": function}],
    }
    if content is not _ABSENT:
        call["content"] = content
    result = {"role": "tool", "content": "1", "tool_call_id": identifier, "name": _NAME}
    return [_HELLO, call, result]


def _has_arguments(shown: str | None) -> bool:
    """Whether the arguments are there, and neither encoded twice nor spelled as Python does."""
    if shown is None or "akunu_key" not in shown or "akunu value" not in shown:
        return False
    if _ARGUMENTS_AS_JSON.search(shown):
        return True
    return '\\"akunu_key' not in shown and not re.search(r"'akunu_key'\s*:", shown)


def _object_of(text: str, place: str) -> dict[str, Any]:
    try:
        arguments = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        try:  # of a call that was cut and that a client sends back
            return arguments_so_far(text)
        except (ValueError, RecursionError):
            raise ArgumentError(
                f"{place} is not JSON ({error}), and this model's chat template needs an object"
            ) from None
    if not isinstance(arguments, dict):
        raise ArgumentError(
            f"{place} is the JSON of a {type(arguments).__name__}, and this model's chat template "
            "needs an object"
        )
    return arguments
