"""Tools as a caller gives them: descriptions in OpenAI's or Anthropic's form, Python functions.

>>> def add(a: int, b: int = 0) -> int:
...     '''Add two numbers.
...
...     Args:
...         a: The first one.
...     '''
...     return a + b
>>> definition_of(add)["function"]["parameters"]["properties"]["a"]
{'type': 'integer', 'description': 'The first one.'}
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from akunu.errors import ArgumentError
from akunu.grammar.schema.source import without_nulls
from akunu.templates.messages import plain

Tool = Mapping[str, Any] | Callable[..., Any]

_NAME: Final = re.compile(r"[A-Za-z0-9_.:/-]{1,128}")
# What the schema of the arguments is called: by OpenAI, by Anthropic, by the protocol MCP.
_SCHEMA_KEYS: Final = ("parameters", "input_schema", "inputSchema")
_PLAIN: Final = {str: "string", int: "integer", float: "number", bool: "boolean"}
_SECTIONS: Final = re.compile(r"(?m)^\s*(?:Args|Arguments|Parameters|Params)\s*:?\s*$")
_SPHINX: Final = re.compile(r"(?m)^\s*:param (?:[^:\n]* )?(\w+):\s*(.*(?:\n\s+(?!:).+)*)")
_HEADING: Final = re.compile(r"(?m)^\s*\w[\w ]*\n\s*-{3,}\s*$")
_ENTRY: Final = re.compile(r"(\w+)\s*(?:\([^)]*\)\s*)?(:)?\s*(.*)")


@dataclass(frozen=True, slots=True)
class Tools:
    """Tools that were checked."""

    definitions: tuple[dict[str, Any], ...]
    """As OpenAI has them: `{"type": "function", "function": {"name": ...}}`."""
    functions: Mapping[str, Callable[..., Any]]
    """Those that were passed as functions, by their names."""

    @property
    def schemas(self) -> dict[str, Mapping[str, Any]]:
        """The schemas of the arguments, by the tools' names; without parameters, of none."""
        functions = [each["function"] for each in self.definitions]
        return {each["name"]: _closed(each.get("parameters") or {}) for each in functions}


def _closed(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the same schema, which allows no arguments where it describes none."""
    if schema.get("properties") == {} and schema.keys() <= {"type", "properties", "required"}:
        return {**schema, "additionalProperties": False}
    return schema


def checked_tools(tools: object) -> Tools:
    """Return the tools of a call; ArgumentError naming the one that is wrong, and how."""
    if isinstance(tools, (str, bytes, Mapping)) or not isinstance(tools, Sequence):
        raise ArgumentError(
            f"tools must be a list of dicts or functions, got {type(tools).__name__}"
        )
    definitions: list[dict[str, Any]] = []
    functions: dict[str, Callable[..., Any]] = {}
    seen: set[str] = set()
    for index, tool in enumerate(tools):
        where = f"tools[{index}]"
        if not isinstance(tool, Mapping):
            if not callable(tool) or isinstance(tool, type):
                raise ArgumentError(
                    f"{where} must be a dict or a function, got {type(tool).__name__}"
                )
            definition = plain(definition_of(tool), where)
            functions[definition["function"]["name"]] = tool
        else:
            definition = _checked(plain(tool, where), where)
        name = definition["function"]["name"]
        if name in seen:
            raise ArgumentError(f"{where} has the name {name!r} of an earlier tool")
        seen.add(name)
        definitions.append(definition)
    return Tools(tuple(definitions), functions)


def _checked(tool: Mapping[str, Any], where: str) -> dict[str, Any]:
    kind = tool.get("type") or "function"
    if kind != "function" and not (kind == "custom" and "input_schema" in tool):
        raise ArgumentError(f"{where}['type'] is {kind!r}; only 'function' is known")
    function = tool.get("function", tool if "name" in tool else None)
    if not isinstance(function, Mapping):
        raise ArgumentError(f"{where} must have a 'function', a dict with 'name' and 'parameters'")
    name = function.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ArgumentError(
            f"{where} must have a name of letters, digits, '_', '-', '.', ':' and '/', got {name!r}"
        )
    given = [key for key in _SCHEMA_KEYS if function.get(key) is not None]
    if len(given) > 1:
        raise ArgumentError(
            f"{where}: {name!r} has {' and '.join(map(repr, given))}, which mean the same: keep "
            f"one of them"
        )
    parameters = function[given[0]] if given else {}
    if not isinstance(parameters, Mapping):
        raise ArgumentError(
            f"{where}: {given[0]!r} of {name!r} must be a JSON schema, a dict, "
            f"got {type(parameters).__name__}"
        )
    has_none = not parameters or parameters.get("properties", {}) is None
    parameters = without_nulls(dict(parameters))
    if has_none:
        parameters = {"type": "object", **parameters, "properties": {}}
    kind = parameters.get("type", "object")
    if isinstance(kind, (str, list, tuple)) and "object" not in (
        [kind] if isinstance(kind, str) else kind
    ):
        raise ArgumentError(
            f"{where}: {given[0]!r} of {name!r} has type {kind!r}; "
            "the arguments of a call are an object"
        )
    left_out = (*_SCHEMA_KEYS, "type", "cache_control")  # the last one says nothing of a tool
    found = {
        key: value for key, value in function.items() if key not in left_out and value is not None
    }
    found = {**found, "parameters": parameters}
    found.setdefault("description", "")  # templates ask for it
    return {"type": "function", "function": found}


def definition_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Describe a function: its name, its docstring, and a schema of its annotated parameters.

    Raises ArgumentError for parameters that JSON has no words for.
    """
    name = getattr(function, "__name__", "")
    if not _NAME.fullmatch(name) or name == "<lambda>":
        raise ArgumentError(f"{function!r} has no name for the model to call")
    try:
        signature = inspect.signature(function)
        hints = typing.get_type_hints(function, include_extras=True)
    except (TypeError, ValueError, NameError) as error:
        raise ArgumentError(f"the parameters of {name!r} cannot be read: {error}") from None
    text = inspect.cleandoc(function.__doc__ or "")
    described = described_parameters(text)
    properties: dict[str, Any] = {}
    required = []
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise ArgumentError(f"{name!r} has the parameter {parameter.name!r} without a name")
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ArgumentError(
                f"{name!r} takes *{parameter.name}; a tool has a fixed list of parameters"
            )
        where = f"the parameter {parameter.name!r} of {name!r}"
        schema = schema_of(hints.get(parameter.name, Any), where)
        if parameter.name in described:
            schema.setdefault("description", described[parameter.name])
        properties[parameter.name] = schema
        if parameter.default is parameter.empty:
            required.append(parameter.name)
    parameters: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        parameters["required"] = required
    parameters["additionalProperties"] = False
    description = _SECTIONS.split(_SPHINX.split(text)[0])[0].strip()
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


def schema_of(annotation: Any, where: str) -> dict[str, Any]:
    """Return the JSON schema of an annotation; ArgumentError where JSON has nothing like it."""
    if annotation is Any or annotation is inspect.Parameter.empty:
        return {}
    if annotation is None or annotation is type(None):
        return {"type": "null"}
    if annotation in _PLAIN:
        return {"type": _PLAIN[annotation]}
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        schema = schema_of(arguments[0], where)
        described = [each for each in arguments[1:] if isinstance(each, str)]
        return {**schema, "description": described[0]} if described else schema
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [schema_of(each, where) for each in arguments]}
    if annotation in (list, tuple, set, frozenset) or origin in (list, set, frozenset, Sequence):
        return {"type": "array", **({"items": schema_of(arguments[0], where)} if arguments else {})}
    if origin is tuple:
        if arguments[1:] == (Ellipsis,):
            return {"type": "array", "items": schema_of(arguments[0], where)}
        return {
            "type": "array",
            "prefixItems": [schema_of(each, where) for each in arguments],
            "minItems": len(arguments),
            "maxItems": len(arguments),
        }
    if annotation in (dict, Mapping) or origin in (dict, Mapping):
        values = {"additionalProperties": schema_of(arguments[1], where)} if arguments else {}
        return {"type": "object", **values}
    if hasattr(annotation, "model_json_schema"):  # pydantic's
        found: dict[str, Any] = annotation.model_json_schema()
        return found
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return {"enum": [each.value for each in annotation]}
    if dataclasses.is_dataclass(annotation) or typing.is_typeddict(annotation):
        return _object_schema(annotation, where)
    shown = getattr(annotation, "__name__", repr(annotation))
    raise ArgumentError(f"{where} is annotated {shown}, which has no JSON type")


def _object_schema(annotation: Any, where: str) -> dict[str, Any]:
    hints = typing.get_type_hints(annotation, include_extras=True)
    if dataclasses.is_dataclass(annotation):
        missing = dataclasses.MISSING
        required = [
            each.name
            for each in dataclasses.fields(annotation)
            if each.default is missing and each.default_factory is missing
        ]
    else:
        required = sorted(annotation.__required_keys__)
    properties = {name: schema_of(hint, f"{where}, {name!r}") for name, hint in hints.items()}
    return {
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def described_parameters(text: str) -> dict[str, str]:
    """Return what a docstring says of each parameter, in Google's, NumPy's or Sphinx' style."""
    found = {name: _one_line(said.split("\n")) for name, said in _SPHINX.findall(text)}
    section = _SECTIONS.search(text)
    if section is None:
        return found
    name, indent = "", -1
    said: list[str] = []
    described = _HEADING.split(text[section.end() :])[0]  # up to NumPy's next section
    for line in (*described.strip("\n").split("\n"), ""):
        if set(line.strip()) == {"-"}:
            continue
        depth = len(line) - len(line.lstrip())
        entry = _ENTRY.fullmatch(line.strip())
        if indent < 0:
            indent = depth
        begins = line.strip() != "" and depth <= indent
        if begins or not line.strip():
            if name and said:
                found.setdefault(name, _one_line(said))
            name, said = "", []
        if begins and depth < indent:
            break  # the next section
        if begins and entry is not None:
            name = entry[1]
            is_type = line[indent + len(name) :].startswith(" :")  # NumPy's `name : type`
            said = [] if is_type or not entry[2] else [entry[3]]
        elif name:
            said.append(line)
    return found


def _one_line(lines: Iterable[str]) -> str:
    return " ".join(" ".join(lines).split())
