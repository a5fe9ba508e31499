"""Calling a described tool with at most three parameters, and answering from what it returns."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import arithmetic, tables
from .dialogue import Dialogue, Draw, Message
from .noise import ask
from .records import DAYS, EVENTS, clock_time
from .words import first_name, place, pseudo_word

FAMILY = "tool calls"
Make = Callable[[Any], object]


@dataclass(frozen=True, slots=True)
class Tool:
    names: tuple[str, ...]
    descriptions: tuple[str, ...]
    parameters: tuple[tuple[tuple[str, ...], str, str, Make],
                      ...]  # names, type, description, value
    requests: tuple[str, ...]  # fields are {a}, {b}, {c}
    result: tuple[str, Make, str] | None = None  # key, value, reply with {r} and {a}


def _small(rng) -> int:
    return rng.randint(2, 60)


def _some(rng) -> int:
    return rng.randint(2, 950)


def _word(rng) -> str:
    return pseudo_word(rng, 7)


def _phrase(rng) -> str:
    return rng.choice(("I am late", "see you soon", "dinner is ready", "call me back",
                       "happy birthday",
                       "the train is late", "I found the keys", "good luck",
                       f"bring the {_word(rng)}",
                       f"meet me in {place(rng)}", "thank you", f"ask {first_name(rng)}"))


def _currency(rng) -> str:
    return rng.choice("USD EUR GBP JPY CHF SEK".split())


def _room(rng) -> str:
    return rng.choice("kitchen bedroom bathroom hall garage office cellar attic".split())


def _search(rng) -> str:
    return f"{_word(rng)} {rng.choice(('recipe', 'news', 'map', 'price', 'history'))}"


_CITY = (("city", "location", "place"), "string", "The name of the city", place)
TOOLS = [
    Tool(("get_weather", "weather", "getWeather", "current_weather"),
         ("Get the weather in a city", "Current weather for a city"), (_CITY,),
         ("What is the weather in {a}?", "How is the weather in {a}?", "Is it raining in {a}?",
          "Check the weather in {a}.", "weather in {a}", "Will I need an umbrella in {a}?"),
         ("temperature", lambda rng: rng.randint(-9, 38), "It is {r} degrees in {a}.")),
    Tool(("set_timer", "start_timer", "timer"), ("Set a timer", "Start a countdown timer"),
         ((("minutes", "duration", "length"), "integer", "Minutes to wait", _small),),
         ("Set a timer for {a} minutes.", "Start a timer of {a} minutes.", "Timer for {a} minutes.",
          "Wake me in {a} minutes.", "Remind me in {a} minutes.")),
    Tool(("send_message", "send_text", "sendMessage", "message"), ("Send a message to a person",),
         ((("to", "recipient", "name"), "string", "Who gets it", first_name),
          (("text", "message", "body"), "string", "What to send", _phrase)),
         ("Send {a} the message: {b}", "Tell {a}: {b}", "Write to {a}: {b}", "Text {a}: {b}",
          "Send a message to {a} saying: {b}")),
    Tool(("add_event", "create_event", "calendar_add", "schedule"),
         ("Add an event to the calendar",),
         ((("title", "event", "name"), "string", "What it is", lambda rng: rng.choice(EVENTS)),
          (("day", "weekday", "date"), "string", "The day", lambda rng: rng.choice(DAYS)),
          (("time", "start", "at"), "string", "The time", clock_time)),
         ("Add a {a} on {b} at {c}.", "Schedule a {a} for {b} at {c}.", "Plan a {a} on {b} at {c}.",
          "Put a {a} in my calendar on {b} at {c}.", "I have a {a} on {b} at {c}, add it.")),
    Tool(("convert_currency", "exchange", "currency"), ("Convert an amount of money",),
         ((("amount", "value", "sum"), "number", "How much", _some),
          (("from", "source", "from_currency"), "string", "Currency to convert from", _currency),
          (("to", "target", "to_currency"), "string", "Currency to convert to", _currency)),
         ("Convert {a} {b} to {c}.", "How much is {a} {b} in {c}?", "Change {a} {b} into {c}.",
          "What are {a} {b} in {c}?"),
         ("result", _some, "That is {r} {c}.")),
    Tool(("turn_on_light", "light_on", "lights_on", "switch_on"), ("Turn on the light in a room",),
         ((("room", "where", "place"), "string", "The room",
           _room),),
         ("Turn on the light in the {a}.", "Lights on in the {a}.", "Switch on the {a} light.",
          "It is dark in the {a}, turn on the light.")),
    Tool(("play_music", "play_song", "play"), ("Play a song by title",),
         ((("title", "song", "track"), "string", "The song", lambda rng: _word(rng).capitalize()),
          (("volume", "level"), "integer", "Volume in percent", lambda rng: rng.randint(5, 100))),
         ("Play {a} at volume {b}.", "Play the song {a} at {b} percent.",
          "I want to hear {a} at volume {b}.")),
    Tool(("search_web", "search", "web_search", "find"), ("Search the web",),
         ((("query", "q", "terms"), "string", "What to look for",
           _search),),
         ("Search for {a}.", "Look up {a}.", "Search the web for {a}.", "Find {a} on the web.")),
    Tool(("get_price", "price_of", "stock_price"), ("Get the price of a stock",),
         ((("symbol", "ticker", "stock"), "string", "The symbol",
           lambda rng: _word(rng).upper()[:4]),),
         ("What is the price of {a}?", "Get the stock price of {a}.",
          "How much is a share of {a}?"),
         ("price", _some, "The price of {a} is {r}.")),
    Tool(("book_table", "reserve_table", "reservation"), ("Book a table at a restaurant",),
         ((("restaurant", "place", "name"), "string", "The restaurant", place),
          (("people", "guests", "persons"), "integer", "How many people",
           lambda rng: rng.randint(1, 12)),
          (("time", "at", "hour"), "string", "The time", clock_time)),
         ("Book a table at {a} for {b} people at {c}.", "Reserve a table for {b} at {a} at {c}.",
          "I need a table at {a} for {b} at {c}.")),
    Tool(("call", "phone", "call_person"), ("Call a person by name",),
         ((("name", "person", "contact"), "string", "Who to call", first_name),),
         ("Call {a}.", "Phone {a}.", "Give {a} a call.", "I want to talk to {a}, call them.")),
    Tool(("set_temperature", "heat", "thermostat"), ("Set the temperature of a room",),
         ((("room", "where"), "string", "The room",
           _room),
          (("degrees", "temperature", "celsius"), "integer", "Degrees", lambda rng: rng.randint(12,
                                                                                                28))),
         ("Set the {a} to {b} degrees.", "Make the {a} {b} degrees warm.",
          "Heat the {a} to {b} degrees.")),
]
_INVENTED_REQUESTS = [
    "{verb} {noun} {a}.", "Please {verb} the {noun} {a}.", "I want to {verb} {noun} {a}.",
    "Can you {verb} the {noun} {a}?",
]


def _invented(rng) -> Tool:
    """A tool nobody has seen: its name must be copied from the description."""
    verb, noun = pseudo_word(rng, 6), pseudo_word(rng, 6)
    parameters: list = [((pseudo_word(rng, 6), "id", "name"), "string", f"The {noun}", _word)]
    request = rng.choice(_INVENTED_REQUESTS).replace("{verb}", verb).replace("{noun}", noun)
    if rng.random() < 0.5:
        count = pseudo_word(rng, 6)
        parameters.append(((count,), "integer", f"The {count}", _some))
        request = request.rstrip(".?") + f" with {count} " + "{b}."
    return Tool((f"{verb}_{noun}",), (f"{verb.capitalize()} a {noun}",), tuple(parameters),
                (request,))


def describe(rng, tool: Tool) -> tuple[dict[str, Any], list[str]]:
    """The tool as an OpenAI function, with names chosen for this dialogue."""
    names = []
    for choices, *_ in tool.parameters:
        left = [name for name in choices if name not in names]
        names.append(rng.choice(left or [f"{choices[0]}_2"]))
    properties = {}
    for name, (_, kind, description, _) in zip(names, tool.parameters, strict=True):
        properties[name] = {"type": kind}
        if rng.random() < 0.5:
            properties[name]["description"] = description
    function = {
        "name": rng.choice(tool.names),
        "description": rng.choice(tool.descriptions),
        "parameters": {"type": "object", "properties": properties, "required": names},
    }
    if rng.random() < 0.15:  # as a template engine that sorts keys shows it
        function = json.loads(json.dumps(function, sort_keys=True))
    return {"type": "function", "function": function}, names


def _offer(draw: Draw, wanted: Tool | None) -> tuple[list[dict[str, Any]], int, list[str]]:
    rng = draw.rng
    tools = [wanted] if wanted else []
    for other in rng.sample(TOOLS, rng.choice((0, 0, 1, 1, 2)) + (0 if wanted else 1)):
        if wanted is None or not set(other.names) & set(wanted.names):
            tools.append(other)
    rng.shuffle(tools)
    described = [describe(rng, tool) for tool in tools]
    at = tools.index(wanted) if wanted else -1
    return [tool for tool, _ in described], at, described[at][1]


def call_text(name: str, arguments: dict[str, object]) -> str:
    call = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return f"<tool_call>\n{call}\n</tool_call>"


def _request(draw: Draw) -> tuple[Dialogue, Tool, dict[str, object]]:
    rng = draw.rng
    tool = _invented(rng) if rng.random() < 0.3 else rng.choice(TOOLS)
    values = draw.operands(lambda rng: [make(rng) for *_, make in tool.parameters],
                           lambda values: ("tool", *values))
    tools, at, names = _offer(draw, tool)
    fields = dict(zip("abc", values, strict=False))
    question = ask(rng, rng.choice(tool.requests), keep_case=True, **fields)
    reply = call_text(tools[at]["function"]["name"], dict(zip(names, values, strict=True)))
    messages: list[Message] = [{"role": "user", "content": question},
                               {"role": "assistant", "content": reply}]
    return Dialogue(FAMILY, "call", messages, tools), tool, fields


def call(draw: Draw) -> Dialogue:
    return _request(draw)[0]


def answer_from_result(draw: Draw) -> Dialogue:
    while True:
        dialogue, tool, fields = _request(draw)
        if tool.result is None:
            if draw.rng.random() < 0.25:
                result, reply = '{"ok": true}', "Done."
                break
            continue
        key, make, form = tool.result
        value = make(draw.rng)
        result, reply = json.dumps({key: value}), form.format(r=value, **fields)
        break
    dialogue.messages += [{"role": "tool", "content": result}, {"role": "assistant",
                                                                "content": reply}]
    dialogue.task = "answer from a tool"
    return dialogue


def no_tool_needed(draw: Draw) -> Dialogue:
    """Tools are there, but the question is one that Ember answers itself."""
    inner = tables.fact(draw) if draw.rng.random() < 0.5 else arithmetic.addition(draw)
    tools, _, _ = _offer(draw, None)
    return Dialogue(FAMILY, "no tool needed", inner.messages, tools)


TASKS = [(call, 6), (answer_from_result, 2), (no_tool_needed, 1.5)]
