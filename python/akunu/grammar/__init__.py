"""What a text may be: grammars, as the engine takes them.

>>> from akunu.grammar import from_lark
>>> from_lark('start: "yes" | "no"').llguidance
'{"grammars": [{"lark_grammar": "start: \\\\"yes\\\\" | \\\\"no\\\\""}]}'
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # `typing` takes its time
if TYPE_CHECKING:
    from akunu.grammar.grammar import FreeText, Grammar, Weakened, from_lark
    from akunu.grammar.sources import (
        from_choice,
        from_json,
        from_regex,
        from_rules,
        from_schema,
        mistakes,
    )

__all__ = [
    "FreeText",
    "Grammar",
    "Weakened",
    "from_choice",
    "from_json",
    "from_lark",
    "from_regex",
    "from_rules",
    "from_schema",
    "mistakes",
]

_EXPORTS = {
    "FreeText": "akunu.grammar.grammar",
    "Grammar": "akunu.grammar.grammar",
    "Weakened": "akunu.grammar.grammar",
    "from_choice": "akunu.grammar.sources",
    "from_json": "akunu.grammar.sources",
    "from_lark": "akunu.grammar.grammar",
    "from_regex": "akunu.grammar.sources",
    "from_rules": "akunu.grammar.sources",
    "from_schema": "akunu.grammar.sources",
    "mistakes": "akunu.grammar.sources",
}


def __getattr__(name: str) -> object:
    """Import what a name needs where it is first used: most texts have no grammar."""
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_EXPORTS[name]), name)
    globals()[name] = value  # the next access does not come here
    return value
