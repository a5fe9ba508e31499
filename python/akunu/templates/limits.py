"""What a chat template may do in one rendering: steps, and characters that it makes.

A template comes out of a model file, so it is a stranger. Whatever it makes is counted when it is
there; what could be large at once (`'x' * n`, `replace`, `join`, a list that is written) is looked
at before.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import wraps
from typing import Any, Final

import jinja2
import jinja2.filters
from jinja2.runtime import Context

MAX_STEPS: Final = 5_000_000  # in one rendering: about a second
STEPS_PER_CALL: Final = 10  # an iteration of a loop is one step, a call takes as long as ten
BYTES_PER_STEP: Final = 512  # of values that a template makes: 2.4 GiB in one rendering
MAX_CHARACTERS: Final = 64 * 1024 * 1024  # of one rendering, and of one value
MAX_WIDTH: Final = 1_000_000  # of a column, an indent, a number of slices and the like

# Not an identifier, so no template can read or overwrite it.
BUDGET: Final = "budget of this rendering"

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

    def made(self, value: Any) -> Any:
        """Count what a value takes in memory that the template made, and return it."""
        if isinstance(value, (str, bytes, list, tuple)) and len(value) >= BYTES_PER_STEP // 8:
            limit(len(value))
            self.spend(sys.getsizeof(value) // BYTES_PER_STEP)
        return value

    def written(self, value: Any) -> int:
        """Count what it takes to write a value as text; return its characters, about.

        A list that is in another one twice is written twice.
        """
        if isinstance(value, str):
            self.spend(len(value) // BYTES_PER_STEP)
            return len(value)
        if not isinstance(value, (list, tuple, dict)):
            return 0
        size = 0
        waiting = [value]
        while waiting:
            item = waiting.pop()
            if isinstance(item, str):
                size += len(item)
                self.spend(len(item) // BYTES_PER_STEP)
            elif isinstance(item, (list, tuple, dict)):
                size += 4 * len(item)
                self.spend(len(item))
                waiting.extend(item.values() if isinstance(item, dict) else item)
        return size


def budget_of(context: Context) -> Budget:
    """Return that of the rendering under way."""
    budget: Budget = context[BUDGET]
    return budget


def limit(size: int) -> None:
    """Raise TemplateError for a value of this many characters or items, where that is too many."""
    if size > MAX_CHARACTERS:
        raise jinja2.TemplateError(f"the template makes a value of {size} characters")


def limit_widths(args: Iterable[Any], kwargs: Mapping[str, Any]) -> None:
    """Raise TemplateError where a number says how long a value shall be, and is large."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, int) and abs(value) > MAX_WIDTH:
            raise jinja2.TemplateError(f"the template asks for a width or count of {value}")


def limit_format(budget: Budget, form: str, mark: str, values: Iterable[Any]) -> None:
    """Likewise for a format, whose fields begin with `mark`; one may write the same value often."""
    if _LONG_NUMBER.search(form):
        raise jinja2.TemplateError("the template formats with a width of seven digits or more")
    limit(form.count(mark) * max(map(budget.written, values), default=0))


def limit_method(budget: Budget, name: str, owner: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Likewise for a method of a text; returns its arguments."""
    if name == "replace":
        _limit_replace(owner, *args)
    elif name == "expandtabs":
        width = args[0] if args and isinstance(args[0], int) else 8
        limit(owner.count("\t") * max(width, 0))
    elif name == "join" and args:
        return (_joined(budget, args[0], owner), *args[1:])
    return args


def bounded_filter(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter of Jinja's whose numbers and results are limited."""
    passed = getattr(function, "jinja_pass_arg", None)

    @jinja2.pass_context
    @wraps(function)
    def bounded(context: Context, value: Any, *args: Any, **kwargs: Any) -> Any:
        budget = budget_of(context)
        limit_widths(args, kwargs)
        if name == "join":
            value, args, kwargs = _join_arguments(context, value, *args, **kwargs)
        elif name == "format":
            limit_format(budget, str(value), "%", (*args, *kwargs.values()))
        elif name == "replace":
            _limit_replace(str(value), *args, **kwargs)
        elif name in ("indent", "wordwrap"):
            _limit_lines(str(value), (*args, *kwargs.values()))
        elif name not in _LISTS:
            budget.written(value)
        return budget.made(function(*_first(context, passed), value, *args, **kwargs))

    return bounded


# Filters that take a list and write none of it.
_LISTS: Final = {
    "attr", "batch", "count", "d", "default", "dictsort", "first", "groupby", "items", "last",
    "length", "list", "map", "max", "min", "reject", "rejectattr", "reverse", "select",
    "selectattr", "slice", "sort", "sum", "unique",
}  # fmt: skip


def _first(context: Context, passed: Any) -> tuple[Any, ...]:
    """Return what a filter of Jinja's gets before its value."""
    if passed is None:
        return ()
    return (
        {"context": context, "eval_context": context.eval_ctx}.get(
            passed.name, context.environment
        ),
    )


def _join_arguments(
    context: Context, value: Any, d: str = "", attribute: Any = None
) -> tuple[list[Any], tuple[Any, ...], dict[str, Any]]:
    if attribute is not None:
        value = map(jinja2.filters.make_attrgetter(context.environment, attribute), value)
    return _joined(budget_of(context), value, d), (d,), {}


def _joined(budget: Budget, values: Iterable[Any], between: Any) -> list[Any]:
    found = list(counted_one_by_one(budget, values))
    limit(sum(map(budget.written, found)) + len(found) * len(str(between)))
    return found


def _limit_replace(text: str, old: Any = "", new: Any = "", *_: Any, **__: Any) -> None:
    if isinstance(old, str) and isinstance(new, str) and len(new) > len(old):
        limit(len(text) + text.count(old) * (len(new) - len(old)))


def _limit_lines(text: str, values: Iterable[Any]) -> None:
    """Limit filters that add something to each line: each word counts as a line."""
    sizes = [len(value) if isinstance(value, str) else value for value in values]
    wide = max((size for size in sizes if isinstance(size, int)), default=0)
    limit(len(text.split()) * wide)


def counted_one_by_one(budget: Budget, iterable: Iterable[Any]) -> Iterator[Any]:
    """Charge the budget for every item as it comes."""
    for item in iterable:
        budget.spend(1)
        yield item
