"""Ends loops of templates that continue although nothing can happen in them any more.

Jinja as templates use it has no `break`, so they look for something like this:

    {% for j in range(i - 1, -1, -1) %}
        {% if not seen.found %}...{% set seen.found = true %}...{% endif %}
    {% endfor %}

Inside a loop over messages (Gemma 4 has one of these for each) that is quadratic: half a minute for
3,000 messages. A round in which the condition is false does nothing, so the condition, if it is
made only of what other rounds leave as it is, is false in all rounds to come as well: there the
loop is over.
"""

from __future__ import annotations

from typing import TypeVar

from jinja2 import nodes

Node = TypeVar("Node", bound=nodes.Node)

_PURE = (
    *(nodes.Const, nodes.Name, nodes.Getattr, nodes.Getitem, nodes.Not, nodes.And, nodes.Or),
    *(nodes.Compare, nodes.Operand),
)


def end_idle_loop(loop: nodes.For) -> bool:
    """Put a `break` where rounds do nothing from then on; say whether there is such a place."""
    body = [node for node in loop.body if not _is_empty(node)]
    # Jinja takes a loop with `else` that ends at a break for one that had no rounds.
    if loop.recursive or loop.test is not None or loop.else_ or len(body) != 1:
        return False
    (choice,) = body
    if not isinstance(choice, nodes.If):
        return False
    changing = {"loop", *(name.name for name in loop.target.find_all(nodes.Name))}
    if isinstance(loop.target, nodes.Name):
        changing.add(loop.target.name)
    stop = _like(choice, nodes.Break())
    # {% if done %}{% elif ... %}: nothing, as long as `done` holds.
    if all(map(_is_empty, choice.body)) and _is_steady(choice.test, changing):
        choice.body = [stop]
        return True
    if choice.elif_ or choice.else_:
        return False
    # {% if wanted and ... %}: nothing, as soon as the steady terms in front do not hold.
    terms = _terms(choice.test)
    n_steady = next(
        (n for n, term in enumerate(terms) if not _is_steady(term, changing)), len(terms)
    )
    if n_steady == 0:
        return False
    if n_steady < len(terms):
        rest = _like(choice, nodes.If(_joined(terms[n_steady:]), choice.body, [], []))
        choice.body = [rest]
        choice.test = _joined(terms[:n_steady])
    choice.else_ = [stop]
    return True


def _is_empty(node: nodes.Node) -> bool:
    """Whether a node is text of no characters."""
    return isinstance(node, nodes.Output) and all(
        isinstance(part, nodes.TemplateData) and not part.data for part in node.nodes
    )


def _is_steady(test: nodes.Node, changing: set[str]) -> bool:
    """Whether a condition changes nothing and depends on nothing that rounds themselves change.

    No call, filter or test is among these: they may do anything.
    """
    if not isinstance(test, _PURE) or (isinstance(test, nodes.Name) and test.name in changing):
        return False
    return all(_is_steady(child, changing) for child in test.iter_child_nodes())


def _terms(test: nodes.Node) -> list[nodes.Node]:
    """Return the terms that `and` joins, in order."""
    if isinstance(test, nodes.And):
        return [*_terms(test.left), *_terms(test.right)]
    return [test]


def _joined(terms: list[nodes.Node]) -> nodes.Node:
    joined = terms[0]
    for term in terms[1:]:
        joined = _like(term, nodes.And(joined, term))
    return joined


def _like(model: nodes.Node, made: Node) -> Node:
    """Give a node that was made here the place and environment of one that was there."""
    made.lineno, made.environment = model.lineno, model.environment
    return made
