"""In what order a chat template takes messages, found by rendering small conversations.

Coding agents send several system messages, or one in the middle of a conversation, and a user's
messages in a row. Many templates refuse that, or leave messages out without a word.

>>> from akunu.templates.chat_template import ChatTemplate
>>> template = ChatTemplate(
...     "{% for m in messages %}{% if m.role == 'system' and not loop.first %}"
...     "{{ raise_exception('System message must be at the beginning.') }}{% endif %}"
...     "[{{ m.role }}] {{ m.content }} {% endfor %}"
... )
>>> template.render([{"role": "user", "content": "Hi"}, {"role": "system", "content": "Be brief."}])
'[user] Hi [user] Be brief. '
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

Conversation = list[dict[str, Any]]

_INSTRUCTING: Final = ("system", "developer")
_FIRST: Final = "akunu first text"
_SECOND: Final = "akunu second text"
_HELLO: Final = {"role": "user", "content": "Hello"}
_REPLY: Final = {"role": "assistant", "content": "Hello, too"}


class TemplateTurns:
    """Which orders one template takes; asked for as it is needed, and remembered."""

    def __init__(
        self,
        render: Callable[[Conversation], str | None],
        answered_call: Callable[[], Conversation | None],
    ) -> None:
        """Take what renders a conversation, and what makes one that ends with a call's result.

        `render` returns None where the template raises. `answered_call` returns None where the
        template has no calls.
        """
        self._render = render
        self._answered_call = answered_call
        self._late: dict[str, bool] = {}
        self._several: dict[str, bool] = {}

    def fitted(self, messages: Conversation) -> Conversation:
        """Return messages in an order that the template takes and shows; nothing is left out.

        Instructions at the beginning become one message, or the beginning of what the user says;
        later ones become a message of the user; those of a user that follow each other become one.
        """
        fitted = self._with_instructions(messages)
        for index, message in enumerate(fitted):
            if index and message["role"] in _INSTRUCTING and not self._shows(fitted, index):
                fitted[index] = {**message, "role": "user"}
        if _has(fitted, ("user", "user")) and not self.takes_users_in_a_row:
            fitted = _joined(fitted, ("user",))
        if _has(fitted, ("tool", "user")) and not self.takes_users_after_results:
            fitted = _joined(fitted, ("tool",))
        return fitted

    # --- what trial renderings show --------------------------------------------------------------

    @cached_property
    def takes_instructions(self) -> bool:
        """Whether a conversation may begin with a system message."""
        return self._takes([{"role": "system", "content": _FIRST}, _HELLO])

    @cached_property
    def takes_users_in_a_row(self) -> bool:
        """Whether a user may say two things."""
        return self._takes([_user(_FIRST), _user(_SECOND)])

    @cached_property
    def takes_users_after_results(self) -> bool:
        """Whether a user may say something after the result of a call."""
        answered = self._answered_call()
        return answered is None or self._takes([*answered, _user(_FIRST)])

    def takes_several(self, role: str) -> bool:
        """Whether instructions at the beginning may be two messages."""
        if role not in self._several:
            messages = [{"role": role, "content": text} for text in (_FIRST, _SECOND)]
            self._several[role] = self._takes([*messages, _HELLO])
        return self._several[role]

    def takes_late(self, role: str) -> bool:
        """Whether instructions may stand after what a user said."""
        if role not in self._late:
            late = {"role": role, "content": _FIRST}
            conversations = [[_HELLO, late], [_HELLO, _REPLY, late, _HELLO]]
            self._late[role] = all(map(self._takes, conversations))
        return self._late[role]

    def _takes(self, conversation: Conversation) -> bool:
        """Whether a conversation is shown whole, or nothing is known: not even a question is."""
        return self._is_rendered(conversation) or not self._shows_anything

    @cached_property
    def _shows_anything(self) -> bool:
        return self._is_rendered([_user(_FIRST)])

    def _is_rendered(self, conversation: Conversation) -> bool:
        shown = self._render(conversation)
        contents = [message.get("content") for message in conversation]
        return shown is not None and all(
            text in shown for text in (_FIRST, _SECOND) if text in contents
        )

    # --- what is made of it ----------------------------------------------------------------------

    def _with_instructions(self, messages: Conversation) -> Conversation:
        """Put what stands at the beginning into the form that the template has for it."""
        count = 0
        while count < len(messages) and messages[count]["role"] in _INSTRUCTING:
            count += 1
        head, rest = messages[:count], messages[count:]
        if count > 1 and not all(self.takes_several(message["role"]) for message in head):
            head = _joined(head, _INSTRUCTING)
        if not head or self.takes_instructions:
            return [*head, *rest]
        if not rest or rest[0]["role"] != "user":
            return [{**head[0], "role": "user"}, *head[1:], *rest]
        return [_join({**head[0], "role": "user"}, rest[0]), *rest[1:]]

    def _shows(self, messages: Conversation, index: int) -> bool:
        """Whether the instructions at this place are taken where they are."""
        role = messages[index]["role"]
        if all(message["role"] in _INSTRUCTING for message in messages[:index]):
            return self.takes_several(role)
        return self.takes_late(role)


def _user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def _has(messages: Conversation, roles: tuple[str, str]) -> bool:
    """Whether a message of the second role follows one of the first."""
    found = [message["role"] for message in messages]
    return roles in pairwise(found)


def _joined(messages: Conversation, before: tuple[str, ...]) -> Conversation:
    """Put what follows a message of these roles, and is instructions or the user's, into it."""
    found: Conversation = []
    for message in messages:
        goes_on = found and found[-1]["role"] in before and message["role"] in ("user", *before)
        if goes_on and message["role"] != "tool":
            found[-1] = _join(found[-1], message)
        else:
            found.append(message)
    return found


def _join(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    contents = [first["content"], second["content"]]
    if not any(isinstance(content, list) for content in contents):
        return {**first, "content": "\n\n".join(filter(None, contents))}
    parts = [
        part
        for content in contents
        for part in (content if isinstance(content, list) else [{"type": "text", "text": content}])
    ]
    return {**first, "content": parts}
