"""The tools that tool_calls.py describes and calls: names, parameters, requests, results."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .records import DAYS, EVENTS, FOODS, city, clock_time
from .word_lists import lines
from .words import COMMON, first_name, place, pseudo_word

Make = Callable[[Any], object]


@dataclass(frozen=True, slots=True)
class Tool:
    """Requests know {a}, {b}, {c}; a parameter that the request leaves out is optional."""

    names: tuple[str, ...]
    descriptions: tuple[str, ...]
    parameters: tuple[
        tuple[tuple[str, ...], str, str, Make], ...
    ]  # names, type, description, value
    requests: tuple[str, ...]
    result: tuple[str, Make, str] | None = None  # key, value, reply with {r} and {a}


def _small(rng) -> int:
    return rng.randint(2, 60)


def number(rng) -> int:
    return rng.randint(2, 950)


def word(rng) -> str:
    return pseudo_word(rng, 7) if rng.random() < 0.6 else rng.choice(COMMON)


def title(rng) -> str:
    words = [word(rng) for _ in range(rng.choice((1, 1, 2, 3)))]
    return " ".join(words).capitalize() if rng.random() < 0.6 else " ".join(words).title()


_PHRASES = lines("tools", "phrases")


def _phrase(rng) -> str:
    return rng.choice(
        (
            rng.choice(_PHRASES),
            rng.choice(_PHRASES),
            f"bring the {word(rng)}",
            f"meet me in {city(rng)}",
            f"ask {first_name(rng)}",
            f"{word(rng)} and {word(rng)}",
            f"I need a {word(rng)}",
            f"the {word(rng)} is {word(rng)}",
        )
    )


def _currency(rng) -> str:
    return rng.choice("USD EUR GBP JPY CHF SEK NOK DKK CAD AUD".split())


def _room(rng) -> str:
    return rng.choice("kitchen bedroom bathroom hall garage office cellar attic garden".split())


def _search(rng) -> str:
    last = rng.choice("recipe news map price history recipes photos shops books weather".split())
    return " ".join([word(rng) for _ in range(rng.choice((1, 1, 2)))] + [last])


def _file(rng) -> str:
    return word(rng) + rng.choice(("", "", ".txt", ".pdf", ".csv", ".py"))


def _language(rng) -> str:
    return rng.choice("French German Spanish Italian Dutch Greek Polish Danish".split())


def _percent(rng) -> int:
    return rng.randint(5, 100)


_CITY = (("city", "location", "place", "town"), "string", "The name of the city", city)
_PERSON = (("name", "person", "contact", "who"), "string", "Who it is", first_name)
_ROOM = (("room", "where", "place"), "string", "The room", _room)
TOOLS = [
    Tool(
        ("get_weather", "weather", "getWeather", "current_weather", "weather_report"),
        ("Get the weather in a city", "Current weather for a city", "Tells the weather"),
        (_CITY,),
        (
            "[What|How] is the weather [like |]in {a}[ today| now|]?",
            "Is it [raining|cold|warm|sunny] in {a}?",
            "Check the weather in {a}.",
            "weather in {a}",
            "Will I need an umbrella in {a}?",
            "{a} weather",
            "How [warm|cold|hot] is it in {a}?",
            "What is the temperature in {a}?",
            "Does it rain in {a}?",
            "What's the weather doing in {a}?",
            "Should I take a [jacket|hat|sweater] to {a}?",
            "I am going to {a}, how is the weather?",
            "Tell me the weather in {a}.",
        ),
        ("temperature", lambda rng: rng.randint(-9, 38), "It is {r} degrees in {a}."),
    ),
    Tool(
        ("get_time", "time_in", "current_time", "clock"),
        ("Get the time in a city", "Local time of a city"),
        (_CITY,),
        (
            "What time is it in {a}?",
            "time in {a}",
            "How late is it in {a}?",
            "Tell me the time in {a}.",
            "What's the local time in {a}?",
            "{a} time now",
        ),
        ("time", clock_time, "It is {r} in {a}."),
    ),
    Tool(
        ("set_timer", "start_timer", "timer", "countdown"),
        ("Set a timer", "Start a countdown timer"),
        ((("minutes", "duration", "length"), "integer", "Minutes to wait", _small),),
        (
            "[Set|Start|Make] a timer [for|of] {a} minutes.",
            "Timer for {a} minutes.",
            "{a} minutes timer",
            "Wake me in {a} minutes.",
            "Remind me in {a} minutes.",
            "Count down {a} minutes.",
            "I need a timer, {a} minutes.",
            "Tell me when {a} minutes are over.",
            "timer {a} min",
        ),
    ),
    Tool(
        ("set_alarm", "alarm", "wake_up", "add_alarm"),
        ("Set an alarm", "Set an alarm clock"),
        ((("time", "at", "when", "hour"), "string", "The time", clock_time),),
        (
            "Wake me [up |]at {a}.",
            "[Set|Make] the alarm [for|to] {a}.",
            "alarm at {a}",
            "Alarm {a}",
            "I want to get up at {a}.",
            "I must be awake at {a}.",
            "Ring at {a}.",
        ),
    ),
    Tool(
        ("send_message", "send_text", "sendMessage", "message", "text"),
        ("Send a message to a person", "Send a text message"),
        (
            (("to", "recipient", "name"), "string", "Who gets it", first_name),
            (("text", "message", "body", "content"), "string", "What to send", _phrase),
        ),
        (
            "Send {a} the message: {b}",
            "Tell {a}: {b}",
            "Send {a} a text: {b}",
            "{a} should get: {b}",
            "Write to {a}: {b}",
            "Message {a}: {b}",
            "Send a message to {a} saying: {b}",
            "Let {a} know: {b}",
            "Tell {a} that {b}",
            "Send a [text|message] to {a}: {b}",
            "Can you [tell|write|message] {a}: {b}",
            "to {a}: {b}",
            "Message to {a}, text: {b}",
        ),
    ),
    Tool(
        ("add_event", "create_event", "calendar_add", "schedule", "new_event"),
        ("Add an event to the calendar", "Put something into the calendar"),
        (
            (
                ("title", "event", "name", "what"),
                "string",
                "What it is",
                lambda rng: rng.choice(EVENTS),
            ),
            (("day", "weekday", "date"), "string", "The day", lambda rng: rng.choice(DAYS)),
            (("time", "start", "at"), "string", "The time", clock_time),
        ),
        (
            "[Add|Schedule|Plan|Enter] a {a} [on|for] {b} at {c}.",
            "I have a {a} on {b} at {c}, add it.",
            "Put a {a} in[to|] my calendar on {b} at {c}.",
            "{a} on {b} at {c}",
            "Note the {a} on {b} at {c}.",
            "Can you [schedule|plan|add] a {a} [on|for] {b}, {c}?",
            "Calendar: {a}, {b}, {c}",
            "There is a {a} on {b} at {c}. Put it in the calendar.",
            "On {b} at {c} I have a {a}, add it.",
            "Add a {a} on {b}.",
            "Put a {a} on {b} into the calendar.",
        ),
    ),
    Tool(
        ("convert_currency", "exchange", "currency", "money"),
        ("Convert an amount of money", "Convert between currencies"),
        (
            (("amount", "value", "sum"), "number", "How much", number),
            (("from", "source", "from_currency"), "string", "Currency to convert from", _currency),
            (("to", "target", "to_currency"), "string", "Currency to convert to", _currency),
        ),
        (
            "[Convert|Change|Exchange] {a} {b} [to|into] {c}.",
            "How much is {a} {b} in {c}?",
            "What are {a} {b} in {c}?",
            "{a} {b} in {c}",
            "{a} {b} to {c}",
            "How many {c} are {a} {b}?",
            "I have {a} {b}, what is that in {c}?",
            "What do I get in {c} for {a} {b}?",
        ),
        ("result", number, "That is {r} {c}."),
    ),
    Tool(
        ("turn_on_light", "light_on", "lights_on", "switch_on"),
        ("Turn on the light in a room", "Switch the light on"),
        (_ROOM,),
        (
            "Turn on the light in the {a}.",
            "Lights on in the {a}.",
            "Switch on the {a} light.",
            "It is dark in the {a}, turn on the light.",
            "Light in the {a}, please.",
            "{a} light on",
            "I need light in the {a}.",
            "Turn the {a} light on.",
            "Make light in the {a}.",
        ),
    ),
    Tool(
        ("turn_off_light", "light_off", "lights_off", "switch_off"),
        ("Turn off the light in a room", "Switch the light off"),
        (_ROOM,),
        (
            "Turn off the light in the {a}.",
            "Lights out in the {a}.",
            "Switch off the {a} light.",
            "Make it dark in the {a}.",
            "No light in the {a}, please.",
            "{a} light off",
            "Turn the {a} light off.",
            "I am leaving the {a}, switch off the light.",
        ),
    ),
    Tool(
        ("play_music", "play_song", "play", "start_music"),
        ("Play a song by title", "Play music"),
        (
            (("title", "song", "track"), "string", "The song", title),
            (("volume", "level"), "integer", "Volume in percent", _percent),
        ),
        (
            "Play {a} at volume {b}.",
            "Play the song {a} at {b} percent.",
            "Put on {a}, volume {b}.",
            "I want to hear {a} at volume {b}.",
            "Play {a}.",
            "Play the song {a}.",
            "Put on {a}.",
            "I want to hear {a}.",
            "Start the song {a}.",
            "Can you play {a}?",
            "music: {a}",
        ),
    ),
    Tool(
        ("set_volume", "volume", "loudness"),
        ("Set the volume", "Change how loud it is"),
        ((("percent", "level", "volume"), "integer", "From 0 to 100", _percent),),
        (
            "[Set|Put|Turn] the volume [to|at] {a}.",
            "Volume {a}.",
            "Make it {a} percent loud.",
            "volume at {a} percent",
            "Change the volume to {a}.",
            "I want the volume at {a}.",
        ),
    ),
    Tool(
        ("search_web", "search", "web_search", "find", "google"),
        ("Search the web", "Look something up on the internet"),
        ((("query", "q", "terms", "text"), "string", "What to look for", _search),),
        (
            "Search for {a}.",
            "Look up {a}.",
            "Search the web for {a}.",
            "Find {a} on the web.",
            "Search {a}",
            "Look for {a} [online|on the internet].",
            "Can you [search|look] for {a}?",
            "Find me {a}.",
            "I want to find {a} on the internet.",
            "google {a}",
        ),
    ),
    Tool(
        ("get_price", "price_of", "stock_price", "quote"),
        ("Get the price of a stock", "Price of a share"),
        (
            (
                ("symbol", "ticker", "stock"),
                "string",
                "The symbol",
                lambda rng: pseudo_word(rng, 7).upper()[:4],
            ),
        ),
        (
            "What is the price of {a}?",
            "Get the stock price of {a}.",
            "How much is a share of {a}?",
            "price of {a}",
            "{a} stock price",
            "What does a share of {a} cost?",
            "How is {a} doing?",
        ),
        ("price", number, "The price of {a} is {r}."),
    ),
    Tool(
        ("book_table", "reserve_table", "reservation"),
        ("Book a table at a restaurant", "Reserve a table"),
        (
            (("restaurant", "place", "name"), "string", "The restaurant", place),
            (
                ("people", "guests", "persons", "size"),
                "integer",
                "How many people",
                lambda rng: rng.randint(1, 12),
            ),
            (("time", "at", "hour"), "string", "The time", clock_time),
        ),
        (
            "Book a table at {a} for {b} people at {c}.",
            "Reserve a table for {b} at {a} at {c}.",
            "I need a table at {a} for {b} at {c}.",
            "We are {b} people and want to eat at {a} at {c}.",
            "Table at {a}, {b} people, {c}",
            "Can you book {a} for {b} people at {c}?",
            "Book a table at {a} for {b} people.",
            "We are {b} and want a table at {a}.",
        ),
    ),
    Tool(
        ("call", "phone", "call_person", "dial", "make_call"),
        ("Call a person by name", "Start a phone call"),
        (_PERSON,),
        (
            "Call {a}.",
            "Phone {a}.",
            "Give {a} a call.",
            "I want to talk to {a}, call them.",
            "Dial {a}.",
            "Get {a} on the phone.",
            "Can you call {a}?",
            "I need to speak to {a}.",
        ),
    ),
    Tool(
        ("set_temperature", "heat", "thermostat", "heating"),
        ("Set the temperature of a room", "Heat a room"),
        (
            _ROOM,
            (
                ("degrees", "temperature", "celsius"),
                "integer",
                "Degrees",
                lambda rng: rng.randint(12, 28),
            ),
        ),
        (
            "Set the {a} to {b} degrees.",
            "Make the {a} {b} degrees warm.",
            "{a} at {b} degrees",
            "Heat the {a} to {b} degrees.",
            "I want {b} degrees in the {a}.",
            "The {a} should have {b} degrees.",
        ),
    ),
    Tool(
        ("add_to_list", "add_item", "shopping_list", "list_add"),
        ("Add something to a list", "Add to the shopping list"),
        (
            (("item", "thing", "what"), "string", "What to add", word),
            (("count", "quantity", "number"), "integer", "How many", _small),
        ),
        (
            "Add {b} {a} to the list.",
            "Put {b} {a} on the [shopping |]list.",
            "I need {b} {a}, add it.",
            "Add {a} to the [shopping |]list.",
            "Put {a} on my list.",
            "list: {a}",
            "We are out of {a}, put it on the list.",
        ),
    ),
    Tool(
        ("rename", "rename_file", "move_file", "file_rename"),
        ("Rename a file", "Give a file a new name"),
        (
            (("from", "old", "old_name", "source"), "string", "The old name", _file),
            (("to", "new", "new_name", "target"), "string", "The new name", _file),
        ),
        (
            "Rename {a} to {b}.",
            "Rename the file {a} to {b}.",
            "The file {a} should be called {b}.",
            "Change the name of {a} to {b}.",
            "Call the file {a} {b} from now on.",
            "rename {a} {b}",
            "{a} should be named {b}.",
        ),
    ),
    Tool(
        ("delete_file", "remove_file", "delete", "erase"),
        ("Delete a file", "Remove a file"),
        ((("file", "name", "path"), "string", "Which file", _file),),
        (
            "Delete {a}.",
            "Delete the file {a}.",
            "Remove {a}.",
            "Throw away the file {a}.",
            "I don't need {a} any more, delete it.",
            "Can you delete {a}?",
        ),
    ),
    Tool(
        ("open_app", "start_app", "launch", "run_app"),
        ("Open an app", "Start a program"),
        ((("app", "name", "program"), "string", "Which app", title),),
        (
            "Open {a}.",
            "Start {a}.",
            "Launch {a}.",
            "Open the app {a}.",
            "Run {a}.",
            "I want to use {a}, open it.",
            "Can you start {a}?",
        ),
    ),
    Tool(
        ("create_note", "note", "add_note", "write_note"),
        ("Write a note", "Save a note"),
        ((("text", "note", "content"), "string", "What to write down", _phrase),),
        (
            "Note: {a}",
            "Make a note: {a}",
            "Write down: {a}",
            "Save this note: {a}",
            "Note down: {a}",
            "Take a note: {a}",
            "Remember this as a note: {a}",
        ),
    ),
    Tool(
        ("get_route", "route", "directions", "navigate"),
        ("Find the way between two cities", "Directions"),
        (
            (("from", "start", "origin"), "string", "Where it starts", city),
            (("to", "end", "destination"), "string", "Where it ends", city),
        ),
        (
            "How do I get from {a} to {b}?",
            "Route from {a} to {b}.",
            "Show me the way from {a} to {b}.",
            "I want to go from {a} to {b}.",
            "from {a} to {b}",
            "Directions from {a} to {b}, please.",
        ),
    ),
    Tool(
        ("order_food", "order", "food_order"),
        ("Order food", "Order something to eat"),
        (
            (("dish", "food", "item"), "string", "What to eat", lambda rng: rng.choice(FOODS)),
            (("count", "portions", "number"), "integer", "How many", lambda rng: rng.randint(2, 9)),
        ),
        (
            "Order {b} times {a}.",
            "Order {b} portions of {a}.",
            "We want {b} portions of {a}.",
            "Order {a}.",
            "I am hungry, order {a}.",
            "I would like {a}.",
            "Get me some {a}.",
        ),
    ),
    Tool(
        ("translate", "translate_text", "translation"),
        ("Translate a word", "Translate text"),
        (
            (("text", "word", "phrase"), "string", "What to translate", word),
            (("language", "to", "target"), "string", "Into which language", _language),
        ),
        (
            "Translate {a} [to|into] {b}.",
            "What is {a} in {b}?",
            "How do you say {a} in {b}?",
            "{a} in {b}",
            "Say {a} in {b}.",
        ),
    ),
    Tool(
        ("lock_door", "lock", "close_door"),
        ("Lock a door",),
        (_ROOM,),
        (
            "Lock the {a} door.",
            "Lock the door of the {a}.",
            "Is the {a} locked? Lock it.",
            "Close the {a} and lock it.",
            "lock {a}",
        ),
    ),
    Tool(
        ("get_news", "news", "headlines"),
        ("Get the news on a topic", "Latest headlines"),
        ((("topic", "about", "subject"), "string", "The topic", word),),
        (
            "What is the news about {a}?",
            "News on {a}.",
            "Tell me the news about {a}.",
            "What is new about {a}?",
            "Show the headlines on {a}.",
        ),
    ),
    Tool(
        ("take_photo", "photo", "take_picture"),
        ("Take a photo", "Take a picture now"),
        (),
        (
            "Take a photo.",
            "Take a picture.",
            "Make a photo, please.",
            "Photo now!",
            "Picture, please.",
            "I want a photo.",
        ),
    ),
    Tool(
        ("stop_music", "stop", "pause"),
        ("Stop the music", "Stop what is playing"),
        (),
        (
            "Stop the music.",
            "Stop playing.",
            "No more music.",
            "Be quiet, stop the music.",
            "Turn the music off.",
        ),
    ),
]
