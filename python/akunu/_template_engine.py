"""Jinja as chat templates expect it: Hugging Face transformers' configuration, in a sandbox.

`compile_template` gives a template with `trim_blocks`, `lstrip_blocks`, loop controls, the
`generation` block, `tojson` without HTML escapes, `raise_exception` and `strftime_now`. A template
comes out of a model file, so it is a stranger: it runs in Jinja's immutable sandbox, and a `Budget`
ends one that loops, recurses or writes without end. Numbers that say how long a value shall be
(`'x' * n`, `center(n)`, `'%99d' % x` ...) have a limit as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import wraps
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

from akunu._idle_loops import end_idle_loop

MAX_STEPS: Final = 5_000_000  # in one rendering: about a second
STEPS_PER_CALL: Final = 10  # an iteration of a loop is one step, a call takes as long as ten
MAX_CHARACTERS: Final = 64 * 1024 * 1024  # of one rendering, and of one product of strings

# Not an identifier, so no template can read or overwrite it.
_BUDGET: Final = "budget of this rendering"


MAX_WIDTH: Final = 1_000_000  # of a column, an indent, a number of slices and the like

_LONG_NUMBER: Final = re.compile("[0-9]{7}")


class Budget:
    """What one rendering may still do, and the time that it sees."""

    def __init__(self, now: datetime) -> None:
        """Start a full budget; `now` is what `strftime_now` formats."""
        self.now = now
        self._steps = MAX_STEPS

    def spend(self, steps: int) -> None:
        """Count steps; raises TemplateError when there are none left."""
        self._steps -= steps
        if self._steps < 0:
            raise jinja2.TemplateError(f"the template takes more than {MAX_STEPS} steps")


class _Generation(Extension):
    """`{% generation %} ... {% endgeneration %}` marks what a model wrote; it renders as is."""

    tags = {"generation"}  # noqa: RUF012 - Jinja declares it so

    def parse(self, parser: Parser) -> jinja2.nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.Scope(body).set_lineno(line)


class _Given(list[Any]):
    """A list of the caller's, which stays as it is."""


class _Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"*", "**", "%"})

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
        context[_BUDGET].spend(STEPS_PER_CALL)
        method = getattr(function, "__wrapped__", function)  # Jinja wraps str.format
        owner = getattr(method, "__self__", None)
        if isinstance(owner, (str, bytes, int)):  # a method such as center, zfill or to_bytes
            _limit_widths(args, kwargs)
            if isinstance(owner, str) and method.__name__ in ("format", "format_map"):
                _limit_format(owner)
        return super().call(context, function, *args, **kwargs)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "*":
            for count, value in ((left, right), (right, left)):
                if isinstance(count, int) and isinstance(value, (str, list, tuple)):
                    self._limit(len(value) * count)
        elif operator == "%":
            if isinstance(left, str):
                _limit_format(left)
                _limit_widths(right if isinstance(right, tuple) and "*" in left else (), {})
        elif isinstance(left, int) and isinstance(right, int):
            self._limit(left.bit_length() * max(right, 0) // 8)
        return super().call_binop(context, operator, left, right)

    @staticmethod
    def _limit(size: int) -> None:
        if size > MAX_CHARACTERS:
            raise jinja2.TemplateError(f"the template makes a value of {size} characters")


def _limit_widths(args: Iterable[Any], kwargs: Mapping[str, Any]) -> None:
    for value in (*args, *kwargs.values()):
        if isinstance(value, int) and abs(value) > MAX_WIDTH:
            raise jinja2.TemplateError(f"the template asks for a width or count of {value}")


def _limit_format(form: str) -> None:
    if _LONG_NUMBER.search(form):
        raise jinja2.TemplateError("the template formats with a width of seven digits or more")


def _limited(function: Callable[..., Any]) -> Callable[..., Any]:
    """Limit the numbers that a filter takes beside its value."""
    first = 2 if hasattr(function, "jinja_pass_arg") else 1  # after context and value

    @wraps(function)
    def limited(*args: Any, **kwargs: Any) -> Any:
        _limit_widths(args[first:], kwargs)
        return function(*args, **kwargs)

    return limited


def _format(form: Any, *args: Any, **kwargs: Any) -> str:
    _limit_format(str(form))
    _limit_widths(args, {})
    result: str = jinja2.filters.do_format(form, *args, **kwargs)
    return result


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


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(
        list(value) if isgenerator(value) else value,  # what filters such as map return
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


@jinja2.pass_context
def _strftime_now(context: Context, form: str) -> str:
    now: datetime = context[_BUDGET].now
    return now.strftime(form)


@jinja2.pass_context
def _counted_lazily(context: Context, iterable: Iterable[Any]) -> Iterator[Any]:
    """Charge the budget for every round of a loop as it begins."""
    return _counted_one_by_one(context[_BUDGET], iterable)


@jinja2.pass_context
def _counted(context: Context, iterable: Iterable[Any]) -> Iterable[Any]:
    """Charge the budget for all that a loop goes over, at once: that is faster."""
    budget: Budget = context[_BUDGET]
    try:
        budget.spend(len(iterable))  # type: ignore[arg-type]
    except TypeError:
        return _counted_one_by_one(budget, iterable)
    return iterable


def _counted_one_by_one(budget: Budget, iterable: Iterable[Any]) -> Iterator[Any]:
    for item in iterable:
        budget.spend(1)
        yield item


# Filters that no template can name.
_COUNTED: Final = "count the steps of this loop"
_COUNTED_LAZILY: Final = "count the steps of this loop one by one"


def _environment() -> _Environment:
    environment = _Environment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
    )
    environment.filters["format"] = _format
    environment.filters = {name: _limited(f) for name, f in environment.filters.items()}
    environment.filters["tojson"] = _tojson
    environment.filters[_COUNTED] = _counted
    environment.filters[_COUNTED_LAZILY] = _counted_lazily
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
        node.iter = nodes.Filter(node.iter, counted, [], [], None, None).set_lineno(node.lineno)
        if node.environment is not None:
            node.iter.set_environment(node.environment)


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
    given = {name: _kept(value) for name, value in variables.items()}
    for piece in template.generate({**given, _BUDGET: Budget(now)}):
        length += len(piece)
        if length > MAX_CHARACTERS:
            raise jinja2.TemplateError(f"the template writes more than {MAX_CHARACTERS} characters")
        pieces.append(piece)
    return "".join(pieces)


def _kept(value: Any) -> Any:
    """Return JSON-like data with lists that a template cannot change."""
    if isinstance(value, list):
        return _Given([_kept(item) for item in value])
    if isinstance(value, dict):
        return {key: _kept(item) for key, item in value.items()}
    return value
