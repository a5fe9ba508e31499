"""From a request to text: the model's chat template, its tools, thoughts and images."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from akunu.errors import ArgumentError, ContextOverflowError, UnsupportedModelError
from akunu.grammar import FreeText, Grammar
from akunu.images.reader import refuse_images, take_images
from akunu.templates.chat_template import ChatTemplate, chat_pieces, template_ids
from akunu.templates.messages import checked, has_images
from akunu.text.context_overflow import LONG, refuse_too_long
from akunu.text.prefill import taken_prefill, with_prefill
from akunu.text.reply_splitter import ReplySplitter
from akunu.thinking.markers import ThinkingMarkers, markers_of
from akunu.thinking.switch import with_system
from akunu.tools.grammar import optional_calls, required_calls
from akunu.tools.tool_choice import NO_TOOLS, ChatTools, chat_tools

if TYPE_CHECKING:
    from akunu.images.preparation import PreparedImage
    from akunu.images.reader import ImageReader
    from akunu.text.request import Request
    from akunu.tokenizers.tokenizer import Tokenizer

_LATEST_CHARACTERS = 256  # more than any opening of thoughts has


@dataclass(frozen=True, slots=True)
class Rendered:
    """A request as text, and what is known of the reply to it."""

    pieces: Sequence[str | int] = ()
    """Texts, and the template's own control tokens by their ids."""
    opening: str = ""
    """What follows the pieces where thoughts have a budget and the template does not open them."""
    images: Sequence[PreparedImage] = ()
    new_splitter: Callable[[], ReplySplitter] | None = None
    """Makes what tells the parts of a reply apart; None: all of it is text."""
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    """The tools that are Python functions, by name."""
    grammar: Grammar | None = None
    """What the reply may be: thoughts that have a budget, calls that must come."""
    thoughts: FreeText | None = None
    """Thoughts without a budget: what form the answer has begins after them."""
    holds_form: bool = False
    """Whether `grammar` holds the reply to the form as well."""
    holds_calls: bool = False
    """Whether what begins as a call is one: it may be cut, and is never dropped otherwise."""


def render(
    request: Request,
    tokenizer: Tokenizer,
    template: ChatTemplate,
    context: int | None = None,
    reader: ImageReader | None = None,
    name: str = "this model",
) -> Rendered:
    """Render a conversation with a model's chat template.

    `reader`: reads images; None: the model, whose `name` errors mention, reads none. `context`:
    most tokens; None: any number. Raises ArgumentError for messages that the template refuses, and
    for a switch or a variable that it does not have. Raises ContextOverflowError for a conversation
    that is certainly longer than `context` and would take long to encode.
    """
    messages: Any = request.messages
    prefill = None
    if request.continue_final_message:
        messages, prefill = taken_prefill(messages)
    n_messages = len(messages) if isinstance(messages, (list, tuple)) else 0
    if context is not None and n_messages > context:  # each has a token, or more
        raise ContextOverflowError(
            f"the conversation has {n_messages} messages, the context holds {context} tokens"
        )
    images: list[PreparedImage] = []
    if has_images(messages):
        if reader is None:
            refuse_images(messages, name)
        else:
            messages, images = take_images(messages, reader, context)
    thinking = request.thinking
    if thinking is None and request.thinking_budget is not None:
        check_budget(template)
        thinking = True
    use = NO_TOOLS
    has_tools = request.tools is not None or request.tool_choice != "auto"
    if has_tools or request.parallel_tool_calls is not True:
        use = chat_tools(
            template, messages, request.tools, request.tool_choice, request.parallel_tool_calls
        )
        messages = use.messages
    variables = _template_variables(template, request.template_variables or {})
    if thinking is not None:
        messages, variables = _with_thinking(
            template, messages, thinking, use.definitions, variables
        )
    pieces = chat_pieces(tokenizer, template, messages, tools=use.definitions, variables=variables)
    markers: ThinkingMarkers | None = template.thinking_markers
    is_open = template.opens_thoughts(_end_of(tokenizer, pieces))
    if prefill is not None:
        pieces = with_prefill(pieces, prefill, tokenizer, template, in_reasoning=is_open)
        is_open = prefill.is_thinking or (is_open and not prefill.content)
        if prefill.content:  # after which no thoughts come
            markers = None
    if sum([len(each) for each in pieces if isinstance(each, str)]) >= LONG:
        refuse_too_long(tokenizer, pieces, context)
    opening, free = "", None
    if request.thinking_budget is not None:
        if not is_open:  # most models do it themselves; here it is certain that they do
            opening = template.thinking_ends[0]
        is_open = True
        free = thoughts(tokenizer, template, int(request.thinking_budget))
    form = request.grammar if use.wanted else None
    grammar = None
    if use.family is not None or form is not None:
        knows_thoughts = markers is not None and markers.opening.strip() in template.source
        thinks = markers if knows_thoughts else None
        grammar = _grammar(use, tokenizer, thinks, is_open, free, form)
    elif free:
        grammar = Grammar(after=free)
    holds_calls = grammar is not None and _holds_calls(use, form, free)

    def new_splitter() -> ReplySplitter:
        return ReplySplitter(
            markers,
            in_reasoning=is_open,
            calls=None if use.family is None else use.parser,
            must_call=use.must_call and holds_calls,
        )

    return Rendered(
        pieces,
        opening,
        images,
        new_splitter,
        use.functions,
        grammar,
        FreeText(until=(template.thinking_markers.closing,)) if is_open and free is None else None,
        form is not None,
        holds_calls,
    )


def _end_of(tokenizer: Tokenizer, pieces: Sequence[str | int]) -> str:
    """Return the end of a rendering as text, long enough for every opening of thoughts."""
    end = ""
    for piece in reversed(pieces):
        end = (piece if isinstance(piece, str) else tokenizer.token_text(piece)) + end
        if len(end) >= _LATEST_CHARACTERS:
            break
    return end


def _grammar(
    use: ChatTools,
    tokenizer: Tokenizer,
    thinking: ThinkingMarkers | None,
    in_reasoning: bool,
    free: FreeText | None,
    form: Grammar | None,
) -> Grammar | None:
    """Return what the reply may be: `free` first, if there is some, then calls or the form."""
    if use.family is None:
        raise UnsupportedModelError(
            "structured output with tools needs a known notation of tool calls; that of this "
            "model's chat template is not in akunu.tools.families"
        )
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


def _holds_calls(use: ChatTools, form: Grammar | None, free: FreeText | None) -> bool:
    """Whether the grammar of a reply holds all calls that its parser knows."""
    if use.family is None:
        return False
    return use.must_call or form is not None or (free is None and len(use.family.ways) == 1)


def check_budget(template: ChatTemplate) -> None:
    """Raise ArgumentError where there are no thoughts that could have a budget."""
    switch = template.thinking_switch
    if not switch.can_be_switched and not switch.always_thinks:
        raise ArgumentError(
            "thinking_budget is set, but this model's chat template has no thinking"
        )


def thoughts(tokenizer: Tokenizer, template: ChatTemplate, budget: int) -> FreeText:
    """Return thoughts that end by themselves, or after this many tokens with what closes them."""
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
                f"template_variables has {name!r}, which this model's chat template does not "
                f"read; {'it reads ' + ', '.join(asked) if asked else 'it reads none'}"
            )
    return dict(given)


def _with_thinking(
    template: ChatTemplate,
    messages: Sequence[Mapping[str, Any]],
    thinking: bool | str,
    tools: Sequence[Mapping[str, Any]] | None,
    variables: dict[str, Any],
) -> tuple[Sequence[Mapping[str, Any]], dict[str, Any]]:
    """Return messages and variables that make the prompt think, or not."""
    switch = template.thinking_switch
    setting = switch.setting(thinking)
    for name in setting.variables:
        if name in variables:
            raise ArgumentError(
                f"thinking is set twice: thinking={thinking!r}, and {name!r} in template_variables"
            )

    def spelled(value: bool | str) -> tuple[Sequence[Mapping[str, Any]], dict[str, Any]]:
        setting = switch.setting(value)
        said = with_system(checked(messages), setting.system) if setting.system else messages
        return said, {**variables, **setting.variables}

    def rendered_with(value: bool) -> str:
        said, more = spelled(value)
        return template.render(said, tools=tools, **more)

    # Some templates look at their switch in some conversations only.
    if (
        isinstance(thinking, bool)
        and switch.can_be_switched
        and rendered_with(True) == rendered_with(False)
    ):
        raise ArgumentError(
            f"thinking is {thinking!r}, but it has no effect: with a system message, this model's "
            f"chat template ignores it"
        )
    return spelled(thinking)
