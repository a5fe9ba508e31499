"""Jinja as chat templates expect it: Hugging Face transformers' configuration, in a sandbox.

`compile_template` gives a template with `trim_blocks`, `lstrip_blocks`, loop controls, the
`generation` block, `tojson` without HTML escapes, `raise_exception` and `strftime_now`. A template
comes out of a model file, so it is a stranger: it runs in Jinja's immutable sandbox, and a `Budget`
(limits.py) ends one that loops, recurses, or makes texts without end.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from inspect import isgenerator
from typing import Any, Final

import jinja2
import jinja2.filters
import jinja2.meta
import jinja2.nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from akunu.templates import limits
from akunu.templates.idle_loops import end_idle_loop


class _Generation(Extension):
    """`{% generation %} ... {% endgeneration %}` marks what a model wrote; it renders as is."""

    tags = {"generation"}  # noqa: RUF012 - Jinja declares it so

    def parse(self, parser: Parser) -> jinja2.nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.Scope(body).set_lineno(line)


class _CallersList(list[Any]):
    """A list of the caller's, which stays as it is."""


class _Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"*", "**", "%", "+"})

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        # A template may change a list that it made (Kimi K2 does).
        is_own = type(obj) is list and attr in ("append", "pop")
        return is_own or super().is_safe_attribute(obj, attr, value)

    def getattr(self, obj: Any, attribute: str) -> Any:
        # Templates ask namespaces all the time, and the sandbox's own way is 20 times slower. It
        # would find nothing else here: a namespace has no names that begin with an underscore.
        if type(obj) is _Namespace and not attribute.startswith("_"):
            try:
                return jinja2.utils.Namespace.__getattribute__(obj, attribute)
            except AttributeError:
                return self.undefined(obj=obj, name=attribute)
        return super().getattr(obj, attribute)

    def call(self, context: Context, function: Any, *args: Any, **kwargs: Any) -> Any:
        budget = limits.budget_of(context)
        budget.spend(limits.STEPS_PER_CALL)
        method = getattr(function, "__wrapped__", function)  # Jinja wraps str.format
        owner = getattr(method, "__self__", None)
        if isinstance(owner, (str, bytes, int)):  # a method such as center, zfill or to_bytes
            limits.limit_widths(args, kwargs)
            if isinstance(owner, str) and method.__name__ in ("format", "format_map"):
                limits.limit_format(budget, owner, "{", (*args, *kwargs.values()))
            elif isinstance(owner, str):
                args = limits.limit_method(budget, method.__name__, owner, args)
        return budget.made(super().call(context, function, *args, **kwargs))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        budget: limits.Budget = context[limits.BUDGET]
        if operator == "+" and type(left) is str and type(right) is str:
            return budget.made(left + right)
        if operator == "*":
            for count, value in ((left, right), (right, left)):
                if isinstance(count, int) and isinstance(value, (str, list, tuple)):
                    limits.limit(len(value) * count)
        elif operator == "%":
            if isinstance(left, str):
                values = right if isinstance(right, tuple) else (right,)
                limits.limit_format(budget, left, "%", values)
                limits.limit_widths(values if "*" in left else (), {})
        elif operator == "**" and isinstance(left, int) and isinstance(right, int):
            limits.limit(left.bit_length() * max(right, 0) // 8)
        return budget.made(super().call_binop(context, operator, left, right))


class _Dict:
    """The global `dict` without the rest of Python's class."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict(*args, **kwargs)

    def fromkeys(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict.fromkeys(*args, **kwargs)


class _Namespace(jinja2.utils.Namespace):
    """The global `namespace` without names that begin with an underscore."""

    def __init__(*args: Any, **kwargs: Any) -> None:  # `self` may be a keyword
        self, args = args[0], args[1:]
        attributes = dict(*args, **kwargs)
        for name in attributes:
            _check_public(name)
        jinja2.utils.Namespace.__init__(self, attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_public(name)
        super().__setitem__(name, value)


def _check_public(name: object) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise jinja2.exceptions.SecurityError(f"a namespace cannot have the attribute {name!r}")


def _raise_exception(message: object) -> None:
    raise jinja2.TemplateError(str(message))


@jinja2.pass_context
def _tojson(
    context: Context,
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    if isgenerator(value):  # what filters such as map return
        value = list(value)
    limits.limit(limits.budget_of(context).written(value))
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


@jinja2.pass_context
def _strftime_now(context: Context, form: str) -> str:
    return limits.budget_of(context).now.strftime(form)


@jinja2.pass_context
def _counted_lazily(context: Context, iterable: Iterable[Any]) -> Iterator[Any]:
    """Charge the budget for every round of a loop as it begins."""
    return limits.counted_one_by_one(limits.budget_of(context), iterable)


@jinja2.pass_context
def _counted(context: Context, iterable: Iterable[Any]) -> Iterable[Any]:
    """Charge the budget for all that a loop goes over, at once: that is faster."""
    budget = limits.budget_of(context)
    try:
        budget.spend(len(iterable))  # type: ignore[arg-type]
    except TypeError:
        return limits.counted_one_by_one(budget, iterable)
    return iterable


@jinja2.pass_context
def _made(context: Context, value: Any) -> Any:
    return limits.budget_of(context).made(value)


@jinja2.pass_context
def _converted(context: Context, value: Any) -> Any:
    if type(value) is not str or len(value) >= limits.BYTES_PER_STEP:  # less is not a step
        limits.budget_of(context).written(value)
    return value


# Filters that no template can name.
_COUNTED: Final = "count the steps of this loop"
_COUNTED_LAZILY: Final = "count the steps of this loop one by one"
_MADE: Final = "count what this text takes"
_WRITTEN: Final = "count what this is when it is written"


def _environment() -> _Environment:
    environment = _Environment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
    )
    environment.filters = {
        name: limits.bounded_filter(name, f) for name, f in environment.filters.items()
    }
    environment.filters["tojson"] = _tojson
    environment.filters[_COUNTED] = _counted
    environment.filters[_COUNTED_LAZILY] = _counted_lazily
    environment.filters[_MADE] = _made
    environment.filters[_WRITTEN] = _converted
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = _strftime_now
    environment.globals["dict"] = _Dict()
    environment.globals["namespace"] = _Namespace
    return environment


Literals = Callable[[str], str]

# Arguments of these are searched for or compared, they do not become part of the prompt.
_SEARCHING_METHODS: Final = {
    *("split", "rsplit", "splitlines", "partition", "rpartition", "startswith", "endswith"),
    *("find", "rfind", "index", "rindex", "count", "strip", "lstrip", "rstrip"),
    *("removeprefix", "removesuffix"),
}
_SEARCHING_FILTERS: Final = {"select", "reject", "selectattr", "rejectattr", "trim"}


def compile_template(source: str, literals: Literals | None = None) -> jinja2.Template:
    """Compile a template; `literals` rewrites every literal that can become part of the output.

    Raises jinja2.TemplateSyntaxError.
    """
    environment = _environment()
    try:
        tree = environment.parse(source)
        _rewrite(tree, literals)
        tree = _Counting().visit(tree)
        code = environment.compile(tree, filename="<chat template>")
    except jinja2.TemplateSyntaxError:
        raise
    except (RecursionError, SyntaxError, MemoryError):  # of Python, for what Jinja makes of it
        raise jinja2.TemplateSyntaxError("nested too deeply", 1) from None
    return jinja2.Template.from_code(environment, code, environment.make_globals(None))


def _rewrite(node: jinja2.nodes.Node, literals: Literals | None) -> None:
    nodes = jinja2.nodes
    if isinstance(node, nodes.TemplateData) and literals is not None:
        node.data = literals(node.data)
    elif isinstance(node, nodes.Const) and isinstance(node.value, str) and literals is not None:
        node.value = literals(node.value)
    searched: list[nodes.Node] = []
    if isinstance(node, nodes.Compare):
        searched = [node.expr, *node.ops]
    elif isinstance(node, nodes.Test):
        searched = [node.node, *node.args]
    elif isinstance(node, nodes.Getitem):
        searched = [node.arg]
    elif isinstance(node, nodes.Filter) and node.name in _SEARCHING_FILTERS:
        searched = [*node.args]
    elif isinstance(node, nodes.Filter) and node.name == "replace":
        searched = [*node.args[:1]]
    elif isinstance(node, nodes.Call) and isinstance(node.node, nodes.Getattr):
        if node.node.attr in _SEARCHING_METHODS:
            searched = [*node.args]
        elif node.node.attr == "replace":
            searched = [*node.args[:1]]
    for child in node.iter_child_nodes():
        _rewrite(child, None if any(child is other for other in searched) else literals)
    if isinstance(node, nodes.For):
        counted = _COUNTED_LAZILY if end_idle_loop(node) else _COUNTED
        node.iter = _through(counted, node.iter)


class _Counting(NodeTransformer):
    """Has what `~` joins, and what is written, counted."""

    def visit_Concat(self, node: jinja2.nodes.Concat) -> jinja2.nodes.Node:  # noqa: N802
        self.generic_visit(node)
        node.nodes = [_through(_WRITTEN, each) for each in node.nodes]
        counted: jinja2.nodes.Node = _through(_MADE, node)
        return counted

    def visit_Output(self, node: jinja2.nodes.Output) -> jinja2.nodes.Node:  # noqa: N802
        self.generic_visit(node)
        node.nodes = [
            each if isinstance(each, jinja2.nodes.TemplateData) else _through(_WRITTEN, each)
            for each in node.nodes
        ]
        return node


def _through(name: str, node: Any) -> Any:
    found = jinja2.nodes.Filter(node, name, [], [], None, None).set_lineno(node.lineno)
    if node.environment is not None:
        found.set_environment(node.environment)
    return found


def output_literals(source: str) -> list[str]:
    """Return every literal that can become part of what the template writes."""
    found: list[str] = []

    def collect(literal: str) -> str:
        found.append(literal)
        return literal

    compile_template(source, collect)
    return found


def variables(source: str) -> set[str]:
    """Return the names that a template asks for: it does not set them, or looks whether they are.

    >>> sorted(variables("{% if b is defined %}{% set c = a %}{{ b }}{{ c }}{% endif %}"))
    ['a', 'b']
    """
    nodes = jinja2.nodes
    tree = _environment().parse(source)
    asked = {
        asking.node.name
        for asking in tree.find_all((nodes.Test, nodes.Filter))
        if asking.name in ("defined", "undefined", "default", "d")
        and isinstance(asking.node, nodes.Name)
    }
    own = {name.name for name in tree.find_all(nodes.Name) if name.ctx != "load"}
    own |= {macro.name for macro in tree.find_all(nodes.Macro)}
    return jinja2.meta.find_undeclared_variables(tree) & asked | (
        jinja2.meta.find_undeclared_variables(tree) - own - set(_environment().globals)
    )


def run(template: jinja2.Template, variables: Mapping[str, Any], now: datetime) -> str:
    """Render; raises whatever the template raises, and TemplateError when it does not end."""
    pieces: list[str] = []
    length = 0
    given = _kept(variables)
    for piece in template.generate({**given, limits.BUDGET: limits.Budget(now)}):
        length += len(piece)
        if length > limits.MAX_CHARACTERS:
            raise jinja2.TemplateError(
                f"the template writes more than {limits.MAX_CHARACTERS} characters"
            )
        pieces.append(piece)
    return "".join(pieces)


def _kept(value: Any) -> Any:
    """Return JSON-like data with lists that a template cannot change."""
    if isinstance(value, list):
        return _CallersList(map(_kept, value))
    if isinstance(value, Mapping):
        found = dict(value)
        for key, item in value.items():
            if isinstance(item, (list, dict)):
                found[key] = _kept(item)
        return found
    return value
