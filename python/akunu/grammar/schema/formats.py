"""Formats of texts: which llguidance has, and the patterns of some more."""

from __future__ import annotations

KNOWN = frozenset(
    "date-time time date duration email hostname ipv4 ipv6 uuid uri".split()  # noqa: SIM905
)
"""llguidance holds texts to these itself."""

_CHARACTER = r"(?:[a-zA-Z0-9\-._~!$&'()*+,;=:@]|%[0-9a-fA-F]{2})"
_FIRST = r"(?:[a-zA-Z0-9\-._~!$&'()*+,;=@]|%[0-9a-fA-F]{2})"
_REST = rf"(?:\?(?:{_CHARACTER}|[/?])*)?(?:\#(?:{_CHARACTER}|[/?])*)?"
_HOST = (
    r"(?:(?:[a-zA-Z0-9\-._~!$&'()*+,;=:]|%[0-9a-fA-F]{2})*@)?"
    r"(?:\[[0-9a-fA-F:.]+\]|(?:[a-zA-Z0-9\-._~!$&'()*+,;=]|%[0-9a-fA-F]{2})*)(?::[0-9]*)?"
)

PATTERNS = {
    # RFC 3986, section 4.1: with a scheme or relative; the first part of a path has no colon then.
    "uri-reference": (
        rf"^(?:[a-zA-Z][a-zA-Z0-9+\-.]*:)(?:\/\/{_HOST}(?:\/{_CHARACTER}*)*|"
        rf"\/(?:{_CHARACTER}+(?:\/{_CHARACTER}*)*)?|{_CHARACTER}+(?:\/{_CHARACTER}*)*|){_REST}$"
        rf"|^(?:\/\/{_HOST}(?:\/{_CHARACTER}*)*|"
        rf"\/(?:{_CHARACTER}+(?:\/{_CHARACTER}*)*)?|{_FIRST}+(?:\/{_CHARACTER}*)*|){_REST}$"
    ),
    # RFC 6901
    "json-pointer": r"^(?:\/(?:[^~\/]|~[01])*)*$",
    # draft-handrews-relative-json-pointer-01
    "relative-json-pointer": r"^(?:0|[1-9][0-9]*)(?:#|(?:\/(?:[^~\/]|~[01])*)*)$",
}
"""Formats that are written as patterns."""

UNSAYABLE = frozenset(
    "iri iri-reference idn-email idn-hostname uri-template regex".split()  # noqa: SIM905
)
"""Formats of the standard that nothing here holds a text to."""
