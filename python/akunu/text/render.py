"""What a caller asks of a chat, and what becomes of it: a prompt, and how the reply is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from akunu.common.checks import integer
from akunu.common.side_by_side import is_batch
from akunu.errors import ArgumentError, ContextOverflowError, UnsupportedModelError
from akunu.grammar import FreeText, Grammar
from akunu.options.text_options import ToolsArgument
from akunu.templates.chat_template import ChatTemplate, chat_pieces, template_ids, with_bos
from akunu.templates.messages import checked, has_images
from akunu.text.context_overflow import refuse_too_long
from akunu.text.reply_splitter import ReplySplitter
from akunu.thinking.markers import ThinkingMarkers, markers_of
from akunu.thinking.switch import with_system
from akunu.tools.tool_choice import ToolUse, tool_use

if TYPE_CHECKING:
    from akunu.images.reader import ImageReader, Pixels
    from akunu.tokenizers.tokenizer import Tokenizer

_MOST_TOKENS = 2**31 - 1
_LATEST_TOKENS = 64  # enough for every opening of thoughts, however it is spelled


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """The arguments of a chat that are about the prompt. Raises ArgumentError for bad ones."""

    messages: Sequence[Mapping[str, Any]]
    tools: ToolsArgument = None
    tool_choice: str | Mapping[str, Any] | None = "auto"
    parallel_tool_calls: bool = True
    thinking: bool | str | None = None
    template_variables: Mapping[str, Any] | None = None
    thinking_budget: int | None = None
    form: Grammar | None = None
    """What the answer may be, where that was asked for."""

    def __post_init__(self) -> None:
        """Refuse what has the wrong type."""
        if self.thinking is not None and not isinstance(self.thinking, (bool, str)):
            raise ArgumentError(
                f"thinking is {self.thinking!r}; it must be True, False, or a level such as "
                "'low', or None"
            )
        given = self.template_variables
        if given is not None and not isinstance(given, Mapping):
            raise ArgumentError(f"template_variables must be a dict, got {type(given).__name__}")
        if self.thinking_budget is not None:
            integer("thinking_budget", self.thinking_budget, 0, _MOST_TOKENS, "or None")
            if self.thinking is False:
                raise ArgumentError("thinking_budget is given, but thinking is False")


def chat_requests(messages: Any, **arguments: Any) -> ChatRequest | list[ChatRequest]:
    """Return the request of a conversation, or those of several."""
    if is_batch(messages):
        return [ChatRequest(messages=each, **arguments) for each in messages]
    return ChatRequest(messages=messages, **arguments)


@dataclass(frozen=True, slots=True)
class PreparedChat:
    """The ids of a prompt, and what reads the reply to it."""

    tokens: list[int]
    splitter: ReplySplitter
    functions: Mapping[str, Callable[..., Any]]
    """The tools that are Python functions, by name."""
    grammar: Grammar | None = None
    """What the reply may be: thoughts that have a budget, calls that must come."""
    thoughts: FreeText | None = None
    """Thoughts without a budget: what form the answer has begins behind them."""
    holds_form: bool = False
    """Whether `grammar` holds the reply to the form as well."""
    holds_calls: bool = False
    """Whether what begins as a call is one: it may be cut, and is never dropped otherwise."""
    images: Sequence[tuple[int, Pixels]] = ()
    """Each with the index of its first token."""


def prepared(
    request: ChatRequest,
    tokenizer: Tokenizer,
    template: ChatTemplate,
    context: int | None = None,
    reader: ImageReader | None = None,
    name: str = "this model",
) -> PreparedChat:
    """Render and tokenise a conversation.

    `reader`: of images, None where the model, of this `name`, reads none. Raises ArgumentError for
    what the template refuses, and for a switch or a variable that it does not have;
    ContextOverflowError for what is surely longer than `context` tokens and would take long; None:
    it may have any length.
    """
    n_messages = len(request.messages) if isinstance(request.messages, (list, tuple)) else 0
    if context is not None and n_messages > context:  # each has a token, or more
        raise ContextOverflowError(
            f"the conversation has {n_messages} messages, the context holds {context} tokens"
        )
    given: list[Pixels] = []
    if has_images(request.messages):
        from akunu.images.reader import refuse_images, take_images

        if reader is None:
            refuse_images(request.messages, name)
        else:
            taken, given = take_images(request.messages, reader, context)
            request = replace(request, messages=taken)
    if request.thinking is None and request.thinking_budget is not None:
        check_budget(template)
        request = replace(request, thinking=True)
    use = tool_use(
        template, request.messages, request.tools, request.tool_choice, request.parallel_tool_calls
    )
    request = replace(request, messages=use.messages)
    messages = request.messages
    variables = _template_variables(template, request.template_variables or {})
    if request.thinking is not None:
        messages, variables = _with_thinking(template, request, use.definitions, variables)
    images: Sequence[tuple[int, Pixels]] = ()
    pieces = chat_pieces(tokenizer, template, messages, tools=use.definitions, variables=variables)
    refuse_too_long(tokenizer, pieces, context)
    if reader is not None and given:
        placed = reader.placed(pieces, len(given))
        tokens = with_bos(tokenizer, tokenizer.encode_pieces(placed))
        if context is not None and len(tokens) > context:
            raise ContextOverflowError(
                f"the prompt has {len(tokens)} tokens, the context holds {context}; make it "
                "shorter, or load the model with a longer context"
            )
        images = reader.places(tokens, given)
    else:
        tokens = with_bos(tokenizer, tokenizer.encode_pieces(pieces))
    markers = markers_of(template.source)
    is_open = markers.is_open(tokenizer.decode(tokens[-_LATEST_TOKENS:]))
    free = None
    if request.thinking_budget is not None:
        if not is_open:  # most models do it themselves; here it is certain that they do
            tokens += template_ids(tokenizer, template.thinking_ends[0])
        is_open = True
        free = thoughts(tokenizer, template, int(request.thinking_budget))
    knows_thoughts = markers.opening.strip() in template.source
    form = request.form if use.wanted else None
    grammar = _grammar(use, tokenizer, markers if knows_thoughts else None, is_open, free, form)
    unlimited = FreeText(until=(markers.closing,)) if is_open and free is None else None
    holds_calls = grammar is not None and _holds_calls(use, form, free)
    splitter = ReplySplitter(
        markers,
        in_reasoning=is_open,
        calls=use.parser,
        must_call=use.must_call and holds_calls,
    )
    return PreparedChat(
        tokens,
        splitter,
        use.functions,
        grammar,
        unlimited,
        form is not None,
        holds_calls,
        images,
    )


def _grammar(
    use: ToolUse,
    tokenizer: Tokenizer,
    thinking: ThinkingMarkers | None,
    in_reasoning: bool,
    free: FreeText | None,
    form: Grammar | None,
) -> Grammar | None:
    """Return what the reply may be: `free` first, if it is given, then calls or the form."""
    from akunu.tools.grammar import optional_calls, required_calls

    if use.family is None and form is not None:
        raise UnsupportedModelError(
            "a form is asked for beside tools, but how this model writes calls is not known: its "
            "chat template shows a notation that is none of those in akunu.tools.families"
        )
    if use.family is None:
        return Grammar(after=free) if free else None
    way, tokens = use.family.ways[0], tokenizer.control_tokens()
    if use.must_call or form is not None:
        return required_calls(
            way,
            use.wanted,
            tokens,
            most=use.most,
            thinking=thinking,
            in_reasoning=in_reasoning,
            after=free,
            form=None if use.must_call else form,
        )
    if free:
        return Grammar(after=free)
    return optional_calls(way, use.wanted, tokens, most=use.most)


def _holds_calls(use: ToolUse, form: Grammar | None, free: FreeText | None) -> bool:
    """Whether the grammar of a reply holds all calls that its parser knows."""
    if use.family is None:
        return False
    return use.must_call or form is not None or (free is None and len(use.family.ways) == 1)


def check_budget(template: ChatTemplate) -> None:
    """Raise ArgumentError where there are no thoughts that could have a budget."""
    switch = template.thinking_switch
    if not switch.can_be_switched and not switch.always_thinks:
        raise ArgumentError(
            "thinking_budget is given, but this model's chat template knows no thoughts"
        )


def thoughts(tokenizer: Tokenizer, template: ChatTemplate, budget: int) -> FreeText:
    """Return thoughts that end by themselves, or after so many tokens with what closes them."""
    marker = markers_of(template.source).closing
    token = tokenizer.token_id(marker)
    return FreeText(
        until=(marker if token is None else (token,),),
        most_tokens=budget,
        then=tuple(template_ids(tokenizer, template.thinking_ends[1])),
    )


def _template_variables(template: ChatTemplate, given: Mapping[str, Any]) -> dict[str, Any]:
    for name in given:
        if name not in template.variables:
            asked = sorted(template.variables)
            raise ArgumentError(
                f"template_variables has {name!r}, which this model's chat template does not ask "
                f"for; {'it asks for ' + ', '.join(asked) if asked else 'it asks for nothing'}"
            )
    return dict(given)


def _with_thinking(
    template: ChatTemplate,
    request: ChatRequest,
    tools: Sequence[Mapping[str, Any]] | None,
    variables: dict[str, Any],
) -> tuple[Sequence[Mapping[str, Any]], dict[str, Any]]:
    """Return messages and variables that make the prompt think, or not."""
    thinking = request.thinking
    assert thinking is not None
    switch = template.thinking_switch
    setting = switch.setting(thinking)
    for name in setting.variables:
        if name in variables:
            raise ArgumentError(
                f"thinking is given twice: thinking={thinking!r}, and {name!r} in "
                "template_variables"
            )

    def spelled(value: bool | str) -> tuple[Sequence[Mapping[str, Any]], dict[str, Any]]:
        setting = switch.setting(value)
        messages = request.messages
        if setting.system:
            messages = with_system(checked(messages), setting.system)
        return messages, {**variables, **setting.variables}

    def shown(value: bool) -> str:
        messages, more = spelled(value)
        return template.render(messages, tools=tools, **more)

    # Some templates look at their switch in some conversations only.
    if isinstance(thinking, bool) and switch.can_be_switched and shown(True) == shown(False):
        raise ArgumentError(
            f"thinking is {thinking!r}, but it changes nothing here: with a system message of the "
            "caller's this model's chat template does not look at it"
        )
    return spelled(thinking)
