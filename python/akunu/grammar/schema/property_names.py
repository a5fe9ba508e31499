"""`propertyNames`, said with `properties` and `patternProperties`."""

from __future__ import annotations

from typing import Any

from akunu.grammar.schema.patterns import checked_pattern
from akunu.grammar.schema.reading import Node, SchemaPlace, read
from akunu.grammar.schema.writer_parts import Inexpressible


def restrict_names(node: Node, simple: dict[str, Any]) -> None:
    """Changes `simple`, the other assertions about the object, so that they restrict its names."""
    place: SchemaPlace = node["propertyNames"]
    names = read(place)
    if names is True:
        return
    properties = dict(simple.get("properties", {}))
    patterns = dict(simple.get("patternProperties", {}))
    if names is False or "string" not in names.get("type", ["string"]):
        simple["maxProperties"] = 0
        return
    for keyword in names:
        if keyword not in ("type", "enum", "const", "pattern", "minLength", "maxLength", "not"):
            reason = "no grammar can restrict property names in this way"
            raise Inexpressible(place, reason, keyword)
    only: list[str] = []  # patterns that every name matches
    if "pattern" in names:
        only.append(checked_pattern(place, names["pattern"], "pattern"))
    if "minLength" in names or "maxLength" in names:
        least, most = names.get("minLength", 0), names.get("maxLength", "")
        only.append(f"^[\\s\\S]{{{least},{most}}}$")
    allowed = [names[k] for k in ("enum", "const") if k in names]
    if "not" in names:
        _never(names["not"], properties, patterns)
    if allowed or only:
        if len(only) + bool(allowed) > 1 or simple.get("patternProperties") or patterns:
            raise Inexpressible(place, "several patterns for the names of one object")
        rest = simple.get("additionalProperties", True)
        for name in properties:
            if not _valid(place, name):
                properties[name] = False
        if allowed:
            for name in allowed[0]:
                if isinstance(name, str) and name not in properties:
                    properties[name] = rest
        elif rest is not False:
            patterns[only[0]] = rest
        simple["additionalProperties"] = False
        for name in node.get("required", ()):
            if name not in properties and not _valid(place, name):
                properties[name] = False
    if properties:
        simple["properties"] = properties
    if patterns:
        simple["patternProperties"] = patterns


def _never(place: SchemaPlace, properties: dict[str, Any], patterns: dict[str, Any]) -> None:
    names = read(place)
    if isinstance(names, bool) or len(names) != 1:
        raise Inexpressible(place, "no grammar can restrict property names in this way")
    ((keyword, value),) = names.items()
    if keyword in ("enum", "const"):
        for name in value:
            if isinstance(name, str):
                properties[name] = False
    elif keyword == "pattern":
        patterns[checked_pattern(place, value, "pattern")] = False
    else:
        raise Inexpressible(place, "no grammar can restrict property names in this way", keyword)


def _valid(place: SchemaPlace, name: str) -> bool:
    from jsonschema.validators import Draft202012Validator

    return bool(Draft202012Validator(place.schema).is_valid(name))
