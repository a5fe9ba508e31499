"""Conversations to prompts: the model's own chat template, and ids that a user cannot forge.

>>> from akunu.templates.chat_template import ChatTemplate
>>> template = ChatTemplate("{% for m in messages %}[{{ m.role }}] {{ m.content }}{% endfor %}")
>>> template.render([{"role": "user", "content": "Hello"}])
'[user] Hello'

`encode_chat` is what a generation uses: there the template's own control tokens become tokens, and
the same characters inside a message, a tool or a variable stay text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, Final

import jinja2

from akunu.common import clock_and_ids
from akunu.errors import ArgumentError, ModelFormatError, UnsupportedModelError
from akunu.templates import engine
from akunu.templates.message_format import TemplateHabits
from akunu.templates.messages import Message, checked, is_plain, plain
from akunu.thinking.markers import ThinkingMarkers, markers_of
from akunu.thinking.switch import ThinkingSwitch
from akunu.tokenizers.token_matcher import TokenMatcher
from akunu.tokenizers.tokenizer import Tokenizer
from akunu.tokenizers.vocabulary import CHATML_TOKENS
from akunu.tools.calls_in_messages import with_calls_as_text
from akunu.tools.recognise import recognise, shows_tools
from akunu.tools.template import Recognised
from akunu.tools.tools_in_messages import messages_with_tools

CHATML: Final = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + (message['content'] or '') + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

# Part of the conversation's form; any other role is as foreign as a message's text.
_USUAL_ROLES: Final = {
    *("system", "developer", "user", "assistant", "model"),
    *("tool", "tool_response", "function", "ipython"),
}

_TOKENS: Final = {"bos_token", "eos_token"}
_A_DAY: Final = datetime(2025, 1, 1)

# Unicode's private planes: one character stands for one control token while a template is rendered.
_FIRST_MARK: Final = 0xF0000
_LAST_MARK: Final = 0x10FFFD


class ChatTemplate:
    """A Jinja chat template in Hugging Face's dialect; immutable, threads may share it."""

    def __init__(self, source: str, bos_token: str = "", eos_token: str = "") -> None:
        """Compile `source`; the other two are the texts that templates know by these names.

        Raises ModelFormatError for a template that is not valid Jinja, and ArgumentError for
        arguments that are not str.
        """
        for name, text in (("source", source), ("bos_token", bos_token), ("eos_token", eos_token)):
            if not isinstance(text, str):
                raise ArgumentError(f"{name} must be a str, got {type(text).__name__}")
        self.source = source
        self.bos_token = bos_token
        self.eos_token = eos_token
        try:
            self._plain = engine.compile_template(source)
        except jinja2.TemplateSyntaxError as error:
            raise ModelFormatError(
                f"the chat template, line {error.lineno}: {_one_line(error.message or '')}"
            ) from None
        self._marked: dict[tuple[int, int], _MarkedTemplate] = {}

    def __reduce__(self) -> tuple[type[ChatTemplate], tuple[str, str, str]]:
        """Copy and pickle what it was made of."""
        return type(self), (self.source, self.bos_token, self.eos_token)

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> ChatTemplate:
        """Return the template of a model's file, or ChatML where it has none but ChatML's tokens.

        `Tokenizer.notes` says if it is ChatML. Raises ModelFormatError for a template that is not
        text or not valid Jinja, and UnsupportedModelError for a model that was not made for
        conversations.
        """
        if not isinstance(tokenizer, Tokenizer):
            raise ArgumentError(f"tokenizer must be a Tokenizer, got {type(tokenizer).__name__}")
        if tokenizer.chat_template_fault:
            raise ModelFormatError(
                f"{tokenizer.chat_template_fault}; the model can still complete texts"
            )
        source = tokenizer.chat_template
        if source is None:
            missing = [name for name in CHATML_TOKENS if name not in tokenizer.control_tokens()]
            if missing:
                raise UnsupportedModelError(
                    f"this model has no chat template (tokenizer.chat_template), and without the "
                    f"special token {missing[0]} it does not know ChatML either, so it is not a "
                    f"chat model; it can continue a text (generate, akunu complete)"
                )
            source = CHATML
        bos = "" if tokenizer.bos_id is None else tokenizer.token_text(tokenizer.bos_id)
        eos = "" if tokenizer.eos_id is None else tokenizer.token_text(tokenizer.eos_id)
        return cls(source, bos, eos)

    def render(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        **variables: Any,
    ) -> str:
        """Return the prompt as text, as transformers' `apply_chat_template` renders it.

        `messages`: dicts with `role` and `content` (a str or a list of text parts; None next to
        `tool_calls`), in the form that OpenAI's clients send: what this template wants in another
        one, such as the arguments of a call, is put into it. `tools`: JSON schemas. `variables`:
        what else the template asks for, for example `enable_thinking=False`.
        Raises ArgumentError naming the message and key that are wrong, or with the template's own
        words when it refuses the conversation.
        """
        given = _variables(self, messages, tools, add_generation_prompt, variables)
        now = datetime.fromtimestamp(clock_and_ids.now())
        return self._run(self._plain, given, self.bos_token, self.eos_token, now)

    @cached_property
    def tool_notation(self) -> Recognised | None:
        """How the model writes calls of tools; None where that is not known."""
        return recognise(self)

    @cached_property
    def knows_tools(self) -> bool:
        """Whether the template tells the model which tools there are."""
        return shows_tools(self)

    @cached_property
    def habits(self) -> TemplateHabits:
        """In what form the template wants calls, contents and roles."""
        return TemplateHabits(self.source, lambda messages, tools: self._tried(messages, tools, {}))

    @cached_property
    def thinking_switch(self) -> ThinkingSwitch:
        """Whether and how thinking can be switched on and off."""
        return ThinkingSwitch(
            self.source, lambda messages, variables: self._tried(messages, None, variables)
        )

    @cached_property
    def thinking_markers(self) -> ThinkingMarkers:
        """What stands around thoughts."""
        return markers_of(self.source)

    def opens_thoughts(self, prompt: str) -> bool:
        """Whether a prompt, or its end, ends within thoughts: nothing but space follows."""
        return prompt.rstrip().endswith(self._thinking_opening)

    @cached_property
    def _thinking_opening(self) -> str:
        return self.thinking_markers.opening.rstrip()

    @cached_property
    def thinking_ends(self) -> tuple[str, str]:
        """What the template writes before the thoughts of a reply, and between them and its text.

        The bare markers where it shows no thoughts.
        """
        markers = markers_of(self.source)
        thought, text = "akunu thought", "akunu text"
        question = {"role": "user", "content": "Hello"}
        reply = {"role": "assistant", "content": text, "reasoning": thought}
        on = self.thinking_switch.setting(True).variables
        try:
            prompt = self.render([question], **on)
            shown = self.render([question, reply], add_generation_prompt=False, **on)
        except ArgumentError:
            return markers.opening, markers.closing
        before, _, rest = shown.partition(thought)
        between, found, _ = rest.partition(text)
        opening = before.removeprefix(prompt)
        if not found or markers.closing not in between:
            return markers.opening, markers.closing
        # Where the prompt opens thoughts itself, there is nothing before them.
        is_opening = opening.strip() == markers.opening.strip() and before.startswith(prompt)
        return opening if is_opening else markers.opening, between

    @cached_property
    def variables(self) -> frozenset[str]:
        """The names that the template asks for next to messages, tools and names of tokens."""
        return frozenset(engine.variables(self.source) - set(_all([], None, True, {})) - _TOKENS)

    def _tried(
        self,
        messages: list[dict[str, Any]],
        tools: list[dict[str, Any]] | None,
        variables: Mapping[str, Any],
    ) -> str | None:
        """Return the prompt of messages that akunu made up, None where the template raises."""
        given = _all(messages, tools, True, variables)
        try:
            return self._run(self._plain, given, self.bos_token, self.eos_token, _A_DAY)
        except ArgumentError:
            return None

    def _run(
        self,
        template: jinja2.Template,
        given: dict[str, Any],
        bos_token: str,
        eos_token: str,
        now: datetime,
    ) -> str:
        known = {"bos_token": bos_token, "eos_token": eos_token, **given}
        try:
            return engine.run(template, known, now)
        except RecursionError:
            raise ArgumentError("the chat template calls itself without end") from None
        except Exception as error:  # a template may raise anything that Python can
            raise ArgumentError(f"the chat template refuses: {_one_line(str(error))}") from None


class _MarkedTemplate:
    """A template whose literals hold one private character instead of each control token."""

    def __init__(self, template: ChatTemplate, tokenizer: Tokenizer, first_mark: int) -> None:
        self.owner = tokenizer
        tokens = tokenizer.control_tokens()
        self.tokens = tokens
        self.matcher = TokenMatcher(tokens) if tokens else None
        self.ids: dict[str, int] = {}  # mark -> control token
        marks: dict[int, str] = {}

        def mark(literal: str) -> str:
            if self.matcher is None:
                return literal
            marked = []
            for piece in self.matcher.split(literal):
                if isinstance(piece, int):
                    if piece not in marks:
                        marks[piece] = chr(first_mark + len(marks))
                        self.ids[marks[piece]] = piece
                    piece = marks[piece]
                marked.append(piece)
            return "".join(marked)

        self.template = engine.compile_template(template.source, mark)
        self.bos_token = mark(template.bos_token)
        self.eos_token = mark(template.eos_token)
        self.last_mark = first_mark + len(marks)  # one more than in use: the breaker
        self.breaker = chr(self.last_mark)
        self.texts = {mark: tokenizer.token_text(index) for mark, index in self.ids.items()}
        self._names = {ord(mark): text for mark, text in self.texts.items()}
        self._splitter = TokenMatcher(self.ids) if self.ids else None
        self._literals = set(engine.output_literals(template.source))

    def expand(self, rendered: str) -> str:
        """Put the tokens' names back in place of the marks."""
        if not self.texts:
            return rendered
        return rendered.translate(self._names)

    def composed(self, rendered: str) -> dict[str, int]:
        """Return the control tokens in the text that the template may have put together itself.

        For example `'<|' + message.role + '|>'`: one of the literals or usual roles, between the
        end of one literal and the start of another.
        """
        if self.matcher is None:
            return {}
        found = {piece for piece in self.matcher.split(rendered) if isinstance(piece, int)}
        if not found:
            return {}
        names = {text: index for text, index in self.tokens.items() if index in found}
        middles = [text for text in self._literals | _USUAL_ROLES if text]
        return {
            text: index
            for text, index in names.items()
            if any(self._composes(text, middle) for middle in middles)
        }

    def _composes(self, text: str, middle: str) -> bool:
        at = text.find(middle)
        while at >= 0:
            before, after = text[:at], text[at + len(middle) :]
            if (before or after) and (
                (not before or any(literal.endswith(before) for literal in self._literals))
                and (not after or any(literal.startswith(after) for literal in self._literals))
            ):
                return True
            at = text.find(middle, at + 1)
        return False

    def is_harmless(self, texts: Sequence[str], keys: Sequence[str]) -> bool:
        """Whether none of these could add a control token to the prompt, or a part of one."""
        if not self.tokens:
            return True
        edges = _Edges(self.tokens)
        return not any(
            edges.touches(text)
            or any(self._composes(token, text.strip()) for token in edges.around(text))
            for text in texts
        ) and not any(token in key for token in self.tokens for key in keys)

    def split(self, rendered: str, tokens: Mapping[str, int]) -> list[str | int]:
        """Return the pieces of a rendering: marks and the given tokens' names become ids."""
        splitter = TokenMatcher({**self.ids, **tokens}) if tokens else self._splitter
        if splitter is not None:
            return splitter.split(rendered)
        return [rendered] if rendered else []


class _Edges:
    """Says whether a string could be part of one of these tokens, whatever stands next to it."""

    def __init__(self, tokens: Mapping[str, int]) -> None:
        self._tokens = list(tokens)
        self._matcher = TokenMatcher(tokens)
        self._starts = {token[:end] for token in tokens for end in range(1, len(token))}
        self._ends = {token[begin:] for token in tokens for begin in range(1, len(token))}
        self._longest = max(map(len, tokens))

    def touches(self, text: str) -> bool:
        """Whether `text` holds a token, or begins or ends inside one.

        Templates trim, so spaces around the text do not count.
        """
        core = text.strip()
        lengths = range(1, min(len(core), self._longest) + 1)
        return any(
            core[-length:] in self._starts or core[:length] in self._ends for length in lengths
        ) or any(isinstance(piece, int) for piece in self._matcher.split(text))

    def around(self, text: str) -> list[str]:
        """Return the tokens that have `text` inside."""
        core = text.strip()
        if not 0 < len(core) < self._longest:
            return []
        return [token for token in self._tokens if core in token]

    def broken(self, text: str, breaker: str) -> str:
        """Return `text` with the breaker wherever it could take part in one of the tokens."""
        for token in self._tokens:
            text = text.replace(token, token[0] + breaker + token[1:])
        if not self.touches(text) and not self.around(text):
            return text
        core = text.strip()
        return text.replace(core, f"{breaker}{core}{breaker}", 1)


def encode_chat(
    tokenizer: Tokenizer,
    template: ChatTemplate,
    messages: Sequence[Message],
    *,
    tools: Sequence[Mapping[str, Any]] | None = None,
    add_generation_prompt: bool = True,
    **variables: Any,
) -> list[int]:
    """Return the prompt of a conversation as ids; arguments as `ChatTemplate.render`.

    Control tokens that the template writes become tokens; the same characters in anything that the
    caller supplied stay text. BOS is there once if the model wants it or the template writes it.
    Raises ArgumentError as `render` does, and where a template treats such characters in a way
    that makes the two impossible to tell apart.
    """
    pieces = chat_pieces(
        tokenizer,
        template,
        messages,
        tools=tools,
        add_generation_prompt=add_generation_prompt,
        variables=variables,
    )
    return with_bos(tokenizer, tokenizer.encode_pieces(pieces))


def with_bos(tokenizer: Tokenizer, ids: list[int]) -> list[int]:
    """Return a conversation's ids with BOS in front, if the model wants it there."""
    if tokenizer.add_bos and tokenizer.bos_id is not None and ids[:1] != [tokenizer.bos_id]:
        return [tokenizer.bos_id, *ids]
    return ids


def template_ids(tokenizer: Tokenizer, text: str) -> list[int]:
    """Return the ids of a text that a template writes after others: names of tokens are tokens."""
    tokens = tokenizer.control_tokens()
    pieces = TokenMatcher(tokens).split(text) if tokens else [text]
    opening = tokenizer.encode_pieces(["a"])  # text that opens a prompt may get a space in front
    return tokenizer.encode_pieces(["a", *pieces])[len(opening) :]


def chat_pieces(
    tokenizer: Tokenizer,
    template: ChatTemplate,
    messages: Sequence[Message],
    *,
    tools: Sequence[Mapping[str, Any]] | None = None,
    add_generation_prompt: bool = True,
    variables: Mapping[str, Any] | None = None,
    now: datetime | None = None,
) -> list[str | int]:
    """Return a rendered conversation as pieces: text, and the template's own control tokens as ids.

    `now`: what the template's clock says; None: the time. Raises ArgumentError as `encode_chat`.
    """
    if not isinstance(template, ChatTemplate):
        raise ArgumentError(f"template must be a ChatTemplate, got {type(template).__name__}")
    if not isinstance(tokenizer, Tokenizer):
        raise ArgumentError(f"tokenizer must be a Tokenizer, got {type(tokenizer).__name__}")
    given = _variables(template, messages, tools, add_generation_prompt, variables or {})
    now = now or datetime.fromtimestamp(clock_and_ids.now())
    plain = template._run(template._plain, given, template.bos_token, template.eos_token, now)
    supplied = _strings(given)
    marked = _marked_template(template, tokenizer, [*supplied, plain])

    def render(conversation: dict[str, Any]) -> str | None:
        try:
            return template._run(
                marked.template, conversation, marked.bos_token, marked.eos_token, now
            )
        except ArgumentError:  # not in the plain rendering: the marks confuse the template
            return None

    rendered = render(given)
    if rendered is None or marked.expand(rendered) != plain:
        # The template computes with its own tokens' names. Without a trace of them in what the
        # caller supplied, every one in the prompt is the template's.
        if not marked.is_harmless(supplied, _keys(given)):
            raise ArgumentError(_MIXED_UP)
        return marked.split(plain, marked.tokens)
    composed = marked.composed(rendered)
    if composed:
        if any(token in key for token in composed for key in _keys(given)):
            raise ArgumentError(_MIXED_UP)
        edges = _Edges(composed)
        broken = _mapped(given, lambda text: edges.broken(text, marked.breaker))
        if broken != given:
            rendered = render(broken)
        if rendered is None or marked.expand(rendered).replace(marked.breaker, "") != plain:
            raise ArgumentError(_MIXED_UP)
    pieces = marked.split(rendered, composed)
    if not composed:
        return pieces
    return [p if isinstance(p, int) else p.replace(marked.breaker, "") for p in pieces]


_MIXED_UP: Final = (
    "a message contains the name of a control token, and this model's chat template handles the "
    "text so that the two cannot be distinguished; remove the name from the message"
)


def _marked_template(
    template: ChatTemplate, tokenizer: Tokenizer, texts: Sequence[str]
) -> _MarkedTemplate:
    """Return the marked template whose marks occur in none of the texts, nor in the template."""
    used: list[int] = []
    for text in (*texts, template.source):
        used += map(ord, _PRIVATE.findall(text))
    used.sort()
    first = _FIRST_MARK
    while True:
        key = (id(tokenizer), first)
        marked = template._marked.get(key)
        if marked is None or marked.owner is not tokenizer:
            marked = _MarkedTemplate(template, tokenizer, first)
            template._marked = {**dict(list(template._marked.items())[-3:]), key: marked}
        if not used:
            return marked
        clash = [code for code in used if first <= code <= marked.last_mark]
        if not clash:
            return marked
        first = clash[-1] + 1
        if first + (marked.last_mark - _FIRST_MARK) > _LAST_MARK:
            raise ArgumentError("the messages use up Unicode's private planes")


_PRIVATE: Final = re.compile(f"[{chr(_FIRST_MARK)}-\U0010ffff]")


def _one_line(message: str) -> str:
    return " ".join(message.split())[:500] or "it raised an error without a message"


def _variables(
    template: ChatTemplate,
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]] | None,
    add_generation_prompt: bool,
    variables: Mapping[str, Any],
) -> dict[str, Any]:
    """Check the arguments; return what the template sees, in its form and in plain JSON types."""
    conversation = _fitted(template, checked(messages))
    if tools is not None and not isinstance(tools, (list, tuple)):
        raise ArgumentError(f"tools must be a list of dicts, got {type(tools).__name__}")
    for index, tool in enumerate(tools or ()):
        if not isinstance(tool, Mapping):
            raise ArgumentError(f"tools[{index}] must be a dict, got {type(tool).__name__}")
    named = {}
    for name, value in variables.items():
        named[name] = plain(value, name)
    listed = template.habits.no_tools if tools is None else plain(tools, "tools")
    return _all(conversation, listed, bool(add_generation_prompt), named)


def _fitted(template: ChatTemplate, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return messages in the template's form, with calls as text where it leaves them out."""
    habits = template.habits
    if is_plain(messages):
        return messages
    has_calls = any("tool_calls" in each or each["role"] == "tool" for each in messages)
    if not has_calls or not habits.leaves_calls_out:
        return habits.fitted(messages)
    if not template.knows_tools:
        return habits.fitted(messages_with_tools(messages, ()))
    return with_calls_as_text(template, habits.fitted(messages))


def _all(
    messages: list[dict[str, Any]],
    tools: list[dict[str, Any]] | None,
    add_generation_prompt: bool,
    variables: Mapping[str, Any],
) -> dict[str, Any]:
    """Return what a template sees next to the names of tokens."""
    return {
        "messages": messages,
        "tools": tools,
        "documents": None,
        "add_generation_prompt": add_generation_prompt,
        **variables,
    }


def _strings(value: Any) -> list[str]:
    """Return every string that the caller supplied: all but usual roles and keys of messages."""
    found: list[str] = []
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            found.append(each)
        elif isinstance(each, list):
            waiting += each
        elif isinstance(each, dict):
            waiting += [item for key, item in each.items() if not _is_usual_role(key, item)]
    return found


def _is_usual_role(key: str, value: Any) -> bool:
    """Whether this is a message's role; a tool may have a parameter of that name."""
    return key == "role" and isinstance(value, str) and value in _USUAL_ROLES


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    """Return a copy with every supplied string changed; keys stay, templates ask for them."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_mapped(item, change) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: item if _is_usual_role(key, item) else _mapped(item, change)
        for key, item in value.items()
    }


def _keys(value: Any) -> list[str]:
    """Return every key in the data."""
    if isinstance(value, list):
        return [key for item in value for key in _keys(item)]
    if not isinstance(value, dict):
        return []
    return [*map(str, value), *(key for item in value.values() for key in _keys(item))]
