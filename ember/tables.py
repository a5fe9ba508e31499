"""Small tables of facts. The facts are seen in training; a fifth of the wordings is not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from . import facts
from .dialogue import Dialogue, Draw, question_and_answer
from .noise import ask
from .table_wordings import MORE
from .wordings import expanded

FAMILY = "tables"


@dataclass(frozen=True, slots=True)
class Table:
    """Phrasings and the answer know {k} and {v}, and {ak}: the key with “a” or “an” before it.

    {ks} is the key's plural, {no} the value as an ordinal number.
    """

    name: str
    facts: list[tuple[str, str]]
    answer: str
    phrasings: Sequence[str]
    weight: float = 1.0


_TABLES = [
    Table("capital", facts.CAPITALS, "The capital of {k} is {v}.", [
        "[What is|What's|Whats] the capital of {k}?", "Which city is the capital of {k}?",
        "capital of {k}", "[Tell me|Give me|Say] the capital of {k}.", "What's {k}'s capital?",
        "{k}'s capital city?", "[Do you know|Can you tell me] the capital of {k}?", "{k} capital",
        "Name the capital of {k}.", "{k}: capital?", "{k}, what is its capital?",
        "The capital of {k} is which city?", "What city is the capital of {k}?", "capital {k}",
        "{k} has which capital?", "What is the name of {k}'s capital?", "the capital of {k} is ...",
        "What [city|town] is {k}'s capital?", "Which city is the seat of government of {k}?",
        "What is the main city of {k}, its capital?", "What capital does {k} have?",
        "I [want|need] to know [the capital of {k}|{k}'s capital].", "{k} - capital city?",
        "In which city is the government of {k}?", "How is the capital of {k} called?",
        "Can you name the capital city of {k}?", "I need the capital of {k}.",
        "What is the capital city of {k} called?", "Which capital belongs to {k}?",
        "{k} is a country. Its capital?", "I think of {k}. What is its capital?",
        "We talk about {k}. Its capital?",
        "The country is {k}. What is the capital?", "country: {k}, capital: ?"], 4),
    Table("country of a capital", facts.CAPITALS, "{v} is the capital of {k}.", [
        "{v} is the capital of which country?", "Which country has {v} as its capital?",
        "What country is {v} the capital of?", "{v} is the capital of what country?",
        "Name the country whose capital is {v}.", "Of which country is {v} the capital?",
        "{v} is the capital of ...", "[What|Which] country has the capital {v}?",
        "{v} is [what|which] country's capital [city|]?",
        "The capital {v} belongs to what country?",
        "country with the capital {v}", "To which country does the capital {v} belong?",
        "[What|Which] country is governed from {v}?", "{v} is the capital of?",
        "I know that {v} is a capital, but of which country?",
        "In which country is {v} the capital?",
        "{v} is a capital city. Of what country?", "What is {v} the capital of?",
        "The capital of which country is {v}?", "{v}: capital of which country?",
        "Which country's capital is {v}?", "Whose capital is {v}?", "{v}, whose capital is that?",
        "Tell me which country {v} is the capital of.", "{v}: whose capital?",
        "Whose capital city is {v}?",
        "{v} is whose capital?", "Which country does the capital {v} belong to?",
        "{v} is which country's capital?"], 2),
    Table("continent", facts.CONTINENTS, "{k} is in {v}.", [
        "[Which|What] continent is {k} in?", "[On|In] which continent is {k}?", "{k} continent",
        "{k} is [on|in] which continent?", "Where is {k}?", "In which continent does {k} lie?",
        "continent of {k}", "Tell me the continent of {k}.", "Name {k}'s continent.",
        "{k}: which continent?", "[Which|What] continent is {k} on?", "{k} is on what continent?",
        "What is the continent of {k}?", "[On|In] what continent does {k} lie?", "{k}'s continent?",
        "Where in the world is {k}?", "Where is {k} located?", "Where does {k} lie?",
        "[Which|What] continent has {k}?", "[Which|What] continent can I find {k} on?",
        "{k} lies [in|on] which continent?", "Where can I find {k}, which continent?",
        "If I [go|fly] to {k}, which continent am I on?", "On which continent do you find {k}?",
        "{k} is part of what continent?", "To which continent does {k} belong?",
        "What continent does {k} belong to?", "{k} belongs to which continent?",
        "On which part of the earth, which continent, is {k}?", "The continent of {k} is?"], 2),
    Table("language", facts.LANGUAGES, "In {k} people speak {v}.", [
        "What language do people speak in {k}?", "[Which|What] language is spoken in {k}?",
        "What do they speak in {k}?", "What is the language of {k}?", "language of {k}",
        "Tell me the language of {k}.", "In {k} people speak what?", "{k}: language?",
        "What is {k}'s language?", "What is the official language of {k}?", "{k} language",
        "What language [is used|do you hear] in {k}?", "Which language has {k}?",
        "How do people talk in {k}?", "What tongue do they speak in {k}?", "{k} speaks what?",
        "[Which|What] language should I learn for {k}?", "What do the people of {k} speak?",
        "I go to {k}. Which language is spoken there?", "language spoken in {k}",
        "[Which|What] language do they speak in {k}?", "In {k}, which language is spoken?",
        "What language does {k} speak?", "People in {k} speak which language?"], 1.2),
    Table("symbol", facts.ELEMENTS + facts.HEAVY, "The symbol of {k} is {v}.", [
        "What is the chemical symbol of {k}?", "What is the symbol for {k}?", "symbol of {k}",
        "Which symbol does {k} have?", "Chemical symbol for {k}?", "What is {k}'s symbol?",
        "Give me the symbol of {k}.", "How is {k} written in chemistry?", "{k} symbol",
        "symbol for {k}", "chemical symbol {k}", "{k}, chemical symbol?", "{k}: symbol?",
        "What symbol stands for {k}?", "How do you write {k} in chemistry?",
        "What is the short form of the element {k}?", "What is the periodic table symbol of {k}?",
        "How do you abbreviate {k} in chemistry?", "The chemical symbol for {k} is?",
        "In the periodic table, what symbol is {k}?", "{k} has what chemical symbol?",
        "Tell me the chemical symbol for {k}.", "Which chemical symbol stands for {k}?",
        "What symbol is used for {k}?", "Which letters does {k} have in the periodic table?",
        "Which letters stand for {k} in the periodic table?",
        "How do I find {k} in the periodic table, which letters?", "symbol for {k} in chemistry"],
        2),
    Table("element", facts.ELEMENTS + facts.HEAVY, "{v} is {k}.", [
        "Which element has the symbol {v}?", "What element is {v}?", "Which element is {v}?",
        "What does the chemical symbol {v} stand for?", "The symbol {v} is which element?",
        "Name the element with the symbol {v}.", "{v} stands for which element?",
        "[Which|What] element [uses|has got] the symbol {v}?", "element {v}",
        "{v} is what element?",
        "chemical symbol {v}, which element?", "What does {v} mean in chemistry?",
        "In chemistry, what is {v}?", "{v} in the periodic table is what?",
        "element with symbol {v}",
        "{v} is the chemical symbol of what?", "{v} is the symbol for which element?",
        "In the periodic table, which element is {v}?", "Which element do chemists call {v}?",
        "What is the name of the element {v}?", "The chemical symbol {v} means?",
        "What is the element {v}?", "Which chemical element is written {v}?",
        "{v} is the sign of which element?", "What chemical element has {v} as its symbol?"], 1.5),
    Table("atomic number", facts.ELEMENT_NUMBERS, "The atomic number of {k} is {v}.", [
        "What is the atomic number of {k}?", "Which atomic number does {k} have?",
        "atomic number of {k}", "How many protons does {k} have?", "{k}: atomic number?",
        "Tell me the atomic number of {k}.", "What number is {k} in the periodic table?",
        "{k} atomic number", "{k} has how many protons?", "protons in {k}", "atomic number {k}",
        "Which number does {k} have in the periodic table?", "How many protons are in {k}?",
        "Where is {k} in the periodic table?", "What is the number of the element {k}?",
        "What is the atomic no. of {k}?", "At which number of the periodic table is {k}?",
        "What's the number of protons of {k}?", "{k} is element number?",
        "{k} is which element number?",
        "Give me {k}'s atomic number.", "What is {k}'s atomic number?",
        "How many protons has [an atom of |]{k}?", "The atomic number for {k}?"], 1.2),
    Table("opposite", facts.OPPOSITES, "The opposite of {k} is {v}.", [
        "What is the opposite of {k}?", "opposite of {k}", "Tell me the opposite of {k}.",
        "Which word is the opposite of {k}?", "What is the reverse of {k} in meaning?",
        "Give me the opposite of {k}.", "Name the opposite of {k}.", "{k}: opposite?",
        "opposite {k}", "{k} opposite", "antonym of {k}", "What is the antonym of {k}?",
        "{k}, what is the opposite?", "opposite word for {k}", "What is the contrary of {k}?",
        "Say the opposite of {k}.", "Not {k}, but ...?", "the opposite of {k} is ...",
        "What do you call the opposite of {k}?", "I need the opposite of {k}.",
        "What's a word that means the opposite of {k}?", "If it is not {k}, it is what?",
        "Find the opposite: {k}", "Do you know the opposite of {k}?", "antonym for {k}",
        "Can you tell me the opposite of {k}?", "{k} - what is its opposite?",
        "What word means the opposite of {k}?",
        "Which word has the opposite meaning of {k}?", "{k} is the opposite of what?",
        "What is {k} the opposite of?", "{k} is the opposite of which word?",
        "{k} has what opposite?",
        "Opposite for {k}?", "{k} means the opposite of ..."], 2.4),
    Table("plural", facts.PLURALS, "The plural of {k} is {v}.", [
        "What is the plural of {k}?", "plural of {k}", "Tell me the plural of {k}.",
        "One {k}, two ...?", "What do you call more than one {k}?", "Give the plural of {k}.",
        "{k} plural", "plural {k}", "plural for {k}", "{k}: plural?", "{k} in the plural",
        "What is {k} in the plural?", "How do you say more than one {k}?", "Make {k} plural.",
        "What is the right plural of {k}?", "One {k}, many ...", "I have one {k}. Two are called?",
        "Put {k} in the plural.", "If there are two of a {k}, they are?", "1 {k}, 2 ...?",
        "How do you write {k} in the plural?", "several of a {k} are called?",
        "What is the plural form of {k}?", "How do you form the plural of {k}?",
        "Can you give me the plural of {k}?", "Which word is the plural of {k}?",
        "{k}, what would be the plural?"], 1.7),
    Table("past", facts.PAST, "The past tense of {k} is {v}.", [
        "What is the past tense of {k}?", "past tense of {k}", "What is the past of {k}?",
        "Tell me the past tense of {k}.", "Give the past tense of {k}.", "{k} in the past tense",
        "{k} past tense", "past of {k}", "past form of {k}", "{k}: past tense?", "past tense {k}",
        "How do you say {k} in the past [tense|]?", "the past tense for {k}", "{k} in the past",
        "Today I {k}, yesterday I ...?", "What is {k} in the past tense?", "simple past of {k}",
        "How do I write {k} in the past tense?", "Turn {k} into the past tense.",
        "What does {k} become in the past?", "What's the preterite of {k}?",
        "Put {k} in the past tense.", "What is the simple past of {k}?",
        "Which word is the past tense of {k}?", "{k}, and in the past tense?"], 1.7),
    Table("colour", facts.COLOURS, "The colour of {k} is {v}.", [
        "[What|Which] colour is {k}?", "[What|Which] colour [has|does] {k}?", "colour of {k}",
        "What is the colour of {k}?", "Tell me the colour of {k}.", "{k}: which colour?",
        "{k} is what colour?", "{k} colour", "What is {k}'s colour?", "{k} has which colour?",
        "How is {k} coloured?", "In which colour do I paint {k}?", "the colour of {k} is ...",
        "Do you know the colour of {k}?", "What colour [do|would] you paint {k}?",
        "What is the usual colour of {k}?", "Which colour do you think of with {k}?",
        "Name the colour of {k}.", "Normally, what colour is {k}?", "{k} is which colour?",
        "{k}: what colour?", "What colour does {k} have?", "{k}, what colour is that?",
        "Can you say what colour {k} is?"], 1.2),
    Table("mix", facts.MIXES, "{k} make {v}.", [
        "[What|Which] colour do you get from {k}?", "Mix {k}: what colour is that?",
        "What do {k} make?", "[What|Which] colour do {k} make?", "What is the mix of {k}?",
        "If I mix {k}, what do I get?", "What colour is {k} mixed?", "mixing {k}", "{k} mixed",
        "What [happens|comes out] when I mix {k}?", "{k} together make which colour?",
        "What do you get by mixing {k}?", "Mix {k}.", "{k} give which colour?", "{k} make what?",
        "What colour [results|do I get] when I mix {k}?", "I mix {k}. Which colour is it?",
        "If you put {k} together, which colour is that?", "{k} in one pot: what colour?",
        "Mixing {k} gives which colour?", "Which colour comes from mixing {k}?",
        "Blend {k}, what colour comes out?", "Blending {k} gives what?",
        "Stir {k} together, what colour is it?", "What colour comes out of {k}?",
        "When {k} are mixed, what colour do they give?"]),
    Table("young", facts.YOUNG, "A young {k} is called a {v}.", [
        "What is a young {k} called?", "What is a baby {k} called?", "How do you call a young {k}?",
        "What do you call a baby {k}?", "baby {k}?", "Name the young of {ak}.", "young {k}",
        "What is the young of {ak}?", "baby of {ak}", "What is a little {k} called?",
        "What is the baby of {ak} called?", "What are baby {ks} called?", "{ak}'s baby?",
        "What do we call young {ks}?", "{k}: what is the young called?", "name of a baby {k}",
        "What is the name of a young {k}?", "Tell me the word for a baby {k}.", "{k} baby name?",
        "The young of {ak} is called ...", "When {ak} is small, what is it called?",
        "How is a [baby|young] {k} called?", "{ak} has a baby. What is the baby called?",
        "What is a small {k} called?", "A young {k} is a ...?", "What are young {ks} named?",
        "What is the word for a young {k}?", "Which word means a young {k}?",
        "What do people call the baby of {ak}?", "What is the right word for a baby {k}?"], 1.4),
    Table("sound", facts.SOUNDS, "The {k} says {v}.", [
        "What sound does {ak} make?", "What does [the|a] {k} say?", "Which sound does {ak} make?",
        "How does {ak} sound?", "What [noise|sound] [do|would] {ks} make?", "{k} sound",
        "sound of {ak}", "Tell me the sound of {ak}.", "What do {ks} say?", "{k}: sound?",
        "The {k} says what?", "the {k} goes ...", "How [does|do] [the|a] {k} go?",
        "What is the sound of {ak}?", "What does {ak} sound like?", "noise of {ak}",
        "Which sound do you hear from {ak}?", "What do you hear from {ak}?",
        "If you hear {ak}, what does it say?", "{ak} makes which [sound|noise]?",
        "Make the sound of {ak}.", "What sound comes from {ak}?",
        "What noise does {ak} make?", "Which noise does the {k} make?", "{ks} make what noise?",
        "{ks} make which sound?",
        "a {k} makes what noise?", "the noise of {ks}", "{ks} say what?",
        "How would {ak} say hello?"], 1.2),
    Table("legs", facts.LEGS, "{ak} has {v} legs.", [
        "How many legs does {ak} have?", "How many legs has {ak}?", "Number of legs of {ak}?",
        "{ak} has how many legs?", "Count the legs of {ak}.", "legs of {ak}", "{k} legs",
        "How many legs [has|does] [a|the|one] {k} [got|have]?", "{k}, how many legs?",
        "How many legs [have|do] {ks} have?", "What is the number of legs of {ak}?",
        "{ks} have how many legs?", "how many legs for {ak}", "On how many legs does {ak} walk?",
        "number of legs {k}", "Has {ak} got legs, and how many?", "{ak} stands on how many legs?",
        "If I see {ak}, how many legs do I count?", "{k}: number of legs?",
        "How many legs are on {ak}?", "What number of legs does {ak} have?",
        "Tell me how many legs {ak} has.", "How many legs can you see on {ak}?",
        "With how many legs is {ak} born?"], 1.2),
    Table("sides", facts.SIDES, "{ak} has {v} sides.", [
        "How many sides does {ak} have?", "How many sides has {ak}?", "{ak} has how many sides?",
        "Number of sides of {ak}?", "sides of {ak}", "How many corners does {ak} have?",
        "How many [corners|angles|edges|vertices] has {ak}?", "{k} sides", "corners of {ak}",
        "{k}, how many sides?", "How many sides do {ks} have?", "{ks} have how many sides?",
        "What is the number of sides of {ak}?", "number of corners of {ak}", "{k}: sides?",
        "How many [lines|sides] do I draw for {ak}?", "{ak} is a shape with how many sides?",
        "If I draw {ak}, how many [sides|corners] are there?", "how many corners in {ak}",
        "Count the sides of {ak}.", "How many edges does {ak} have?",
        "Tell me how many sides {ak} has.", "With how many sides do you draw {ak}?"]),
    Table("planet", facts.PLANETS, "{k} is planet number {v} from the Sun.", [
        "Which planet from the Sun is {k}?", "What number is {k} from the Sun?",
        "{k} is which planet from the Sun?", "Where does {k} come among the planets?",
        "What place does {k} have among the planets?", "position of {k} from the Sun",
        "{k} is planet number what?", "What planet number is {k}?", "{k}, which number of planet?",
        "Which number has the planet {k}?", "Counted from the Sun, where is {k}?",
        "{k} planet number",
        "What number planet is {k}?", "{k} is what planet from the sun?", "planet number of {k}",
        "In the order of the planets, where is {k}?", "Which planet in the row is {k}?",
        "Where is {k} in the solar system?", "From the Sun, which place has {k}?",
        "What position is {k} from the Sun?", "How many planets from the Sun is {k}?",
        "At which place from the Sun is {k}?", "Which place does {k} take from the Sun?"], 0.8),
    Table("planet by number", facts.PLANETS, "Planet number {v} from the Sun is {k}.", [
        "Which planet is number {v} from the Sun?", "What is planet number {v} from the Sun?",
        "Name planet {v} from the Sun.", "planet number {v}", "What is planet {v}?",
        "[What|Which] is the {no} planet?", "{no} planet from the sun", "the {no} planet",
        "What is the {no} planet of the solar system?", "Name the {no} planet.", "planet {v}",
        "[What|Which] planet is the {no} one from the Sun?", "{no} planet?", "planet no. {v}",
        "Which planet is {no} from the Sun?", "[What|Which] planet comes {no}?",
        "Which planet comes at place {v} from the Sun?", "Planet {v} from the Sun?",
        "In our solar system, which planet is number {v}?", "The {no} planet is called what?",
        "Tell me planet number {v}.", "Which is planet number {v}?", "Say the {no} planet's name.",
        "The planet with number {v} is?"], 0.8),
    Table("month length", facts.MONTH_LENGTHS, "{k} has {v} days.", [
        "How many days does {k} have?", "How many days are in {k}?", "How long is {k}?",
        "{k} has how many days?", "days in {k}", "Number of days in {k}?", "{k}, how many days?",
        "How many days has {k} [got|]?", "{k} days", "length of {k}", "days of {k}",
        "How many days does the month of {k} have?", "The month {k} has how many days?",
        "How long is the month of {k}?", "How many days long is {k}?", "{k}: how many days?",
        "{k} is how many days long?", "how many days in {k}", "What is the length of {k} in days?",
        "How many days are there in {k}?", "What is the number of days of {k}?",
        "Tell me how many days {k} has.", "Does {k} have 30 or 31 days?", "30 or 31 days in {k}?",
        "Has {k} 28, 30 or 31 days?",
        "Is {k} 30 or 31 days long?",
        "How many days must I wait until {k} is over?"]),
    Table("month number", facts.MONTH_NUMBERS, "{k} is month number {v}.", [
        "Which month of the year is {k}?", "What number is the month {k}?", "{k} is month number?",
        "What is the number of {k}?", "Which number does the month of {k} have?",
        "{k} as a [month |]number", "What month number is {k}?", "{k} month number",
        "{k} is which month?",
        "{k} is what number of month?", "number of the month {k}", "month number of {k}",
        "What is {k} as a month number?", "Which number has {k}?", "{k} in numbers",
        "At which place of the year is {k}?", "Which month is {k}, as a number?",
        "{k}: which month number?", "In the calendar, what number is {k}?",
        "Tell me the number of {k}.", "Give me the month number of {k}.",
        "What number do I write for {k}?", "As a number, which month is {k}?"], 0.7),
    Table("month by number", facts.MONTH_NUMBERS, "Month number {v} is {k}.", [
        "What is the {no} month of the year?", "Which month is number {v}?", "month number {v}",
        "[What|Which] is the {no} month?", "the {no} month", "month {v}", "Name the {no} month.",
        "{no} month of the year", "Which month comes {no} in the year?", "What month is month {v}?",
        "Month {v} is called what?", "What is month number {v}?", "Tell me the name of month {v}.",
        "The {no} month of the year is ...", "Which month has number {v}?"], 0.6),
    Table("next month", facts.NEXT_MONTHS, "{v} comes after {k}.", [
        "[What|Which] month [comes|is] after {k}?", "[What|Which] month follows {k}?",
        "month after {k}", "What comes after {k}?", "After {k} comes which month?", "after {k}?",
        "What is the next month after {k}?", "{k} is over. Which month is next?", "next after {k}",
        "Which is the month following {k}?", "It is {k}. What is the next month?",
        "It is {k} now, what is next month?", "Say the month after {k}."], 0.6),
    Table("previous month", facts.PREVIOUS_MONTHS, "{v} comes before {k}.", [
        "[What|Which] month [comes|is] before {k}?", "month before {k}", "What comes before {k}?",
        "Before {k} comes which month?", "before {k}?", "[What|Which] is the month before {k}?",
        "It is {k}. What was the last month?", "What month was before {k}?",
        "Which month ends when {k} begins?", "What is the previous month of {k}?",
        "Which month precedes {k}?", "It is {k} now, what was last month?",
        "Say the month before {k}."], 0.5),
    Table("next day", facts.NEXT_DAYS, "{v} comes after {k}.", [
        "[What|Which] day [comes|is] after {k}?", "[What|Which] day follows {k}?", "day after {k}",
        "What comes after {k}?", "After {k} comes which day?", "after {k}?",
        "Today is {k}. What day is tomorrow?", "If today is {k}, what is tomorrow?",
        "What is the day after {k}?", "It is {k}. Which day is tomorrow?", "next day after {k}",
        "Which day of the week follows {k}?", "The day after {k} is ...",
        "If it is {k} today, tomorrow is?", "Tomorrow, when today is {k}?",
        "tomorrow if today is {k}",
        "When today is {k}, what is tomorrow?", "Which day is tomorrow? Today is {k}.",
        "What is tomorrow, if it's {k} now?", "{k} today, and tomorrow?",
        "the day right after {k}"], 0.7),
    Table("previous day", facts.PREVIOUS_DAYS, "{v} comes before {k}.", [
        "[What|Which] day [comes|is] before {k}?", "day before {k}", "What comes before {k}?",
        "Before {k} comes which day?", "before {k}?", "What is the day before {k}?",
        "Today is {k}. What day was yesterday?", "If today is {k}, what was yesterday?",
        "It is {k}. Which day was yesterday?", "Which day of the week is before {k}?",
        "Which day precedes {k}?", "The day before {k} is ...",
        "If it is {k} today, yesterday was?", "Yesterday, when today is {k}?",
        "yesterday if today is {k}",
        "When today is {k}, what was yesterday?", "Which day was yesterday? Today is {k}.",
        "What was yesterday, if it's {k} now?", "{k} today, and yesterday?",
        "the day just before {k}"], 0.7),
    Table("next letter", facts.NEXT_LETTERS, "After {k} comes {v}.", [
        "[Which|What] letter comes after {k}?", "letter after {k}", "{k}, and the next letter?",
        "What comes after the letter {k}?", "[Which|What] letter follows {k}?",
        "[Which|What] letter is after {k}?", "In the alphabet, what comes after {k}?", "after {k}?",
        "Which is the letter following {k}?", "next letter after {k}", "{k} is followed by?",
        "What letter is next after {k}?", "In the alphabet, what follows {k}?",
        "alphabet: what is after {k}", "Which letter of the alphabet comes after {k}?",
        "The letter after {k}?", "Tell me the letter after {k}.", "After {k} comes?",
        "What is the next letter after {k}?", "In the alphabet, {k} is followed by which letter?"]),
    Table("previous letter", facts.PREVIOUS_LETTERS, "Before {k} comes {v}.", [
        "[Which|What] letter comes before {k}?", "letter before {k}", "What is before {k}?",
        "What comes before the letter {k}?", "[Which|What] letter is before {k}?",
        "In the alphabet, what comes before {k}?", "Which letter precedes {k}?", "before {k}?",
        "What letter stands before {k}?", "alphabet: what is before {k}", "Before {k} comes?",
        "The letter before {k}?", "Tell me the letter before {k}.",
        "What is the letter in front of {k}?", "the letter in front of {k}",
        "{k}: the letter before?",
        "Which letter is in front of {k}?", "letter in front of {k}",
        "In the abc, what is before {k}?",
        "Which letter do I say before {k}?", "previous letter of {k}",
        "{k} follows which letter?"], 0.6),
    Table("number word", facts.NUMBER_WORDS, "{k} is {v}.", [
        "Write {k} [as a number|in digits|with digits|in numbers].", "What number is {k}?",
        "{k} in digits", "{k} as a number", "How do you write {k} in digits?", "Put {k} in digits.",
        "{k} in [numbers|numerals|figures]", "Convert {k} to [digits|a number].", 
        "{k} as digits", "Change {k} into digits.", "Turn {k} into a number.", "digits of {k}",
        "How does {k} look in digits?", "How do I write the number {k}?", "{k}, in digits please",
        "What is the number {k} in figures?", "Which number is {k}?", "{k} with digits",
        "Show {k} as a number.", "The word {k} as a number?", "{k} [means|is] which number?",
        "What is {k} in digits?", "Give me {k} as a number.", "Which digits does {k} have?",
        "How is {k} written with digits?"], 1.2),
    Table("number in words", facts.NUMBER_WORDS, "{v} is {k}.", [
        "Write {v} [in words|as a word|out].", "{v} in words", "What is {v} in words?",
        "How do you say {v}?", "Spell the number {v} in words.", "{v} as a word", "{v} in letters",
        "How do you write {v} in words?", "Put {v} into words.", "What is the word for {v}?",
        "Say {v} in words.", "How is {v} [written|said] in words?", "Give me {v} in words.",
        "Turn {v} into words.", "The number {v} in words?", "How would I write {v} in words?"],
        0.8),
    Table("roman", facts.ROMAN, "{k} in Roman numerals is {v}.", [
        "What is {k} in Roman numerals?", "Write {k} in Roman numerals.", "{k} in Roman numerals",
        "{k} as a Roman numeral", "What is the Roman numeral for {k}?", "Roman numeral of {k}?",
        "{k} roman", "roman numeral {k}", "{k} in roman", "Turn {k} into a Roman numeral.",
        "Convert {k} to [a Roman numeral|Roman numerals|Roman].", "{k} as Roman numerals",
        "How would a Roman write {k}?", "Show {k} in Roman [numerals|numbers].",
        "{k} in latin numbers",
        "What did [the |]Romans write for {k}?", "Put {k} in Roman numerals.", "roman {k}",
        "How do you write {k} in Roman [numerals|numbers]?", "Give me {k} in Roman numerals.",
        "Which Roman numeral is {k}?", "How does one write {k} in Roman numerals?",
        "In old Rome, how was {k} written?", "In Rome, how did people write {k}?",
        "How was {k} written by the Romans?", "How would they write {k} in ancient Rome?"], 1.2),
    Table("roman to number", facts.ROMAN, "{v} is {k}.", [
        "What number is {v}?", "{v} as a number", "What is {v} in normal numbers?", "{v} in digits",
        "Roman numeral {v}, what number is that?", "Which number is the Roman numeral {v}?",
        "Convert {v} to a number.", "What does {v} mean in Roman numerals?", "roman {v}",
        "{v} is which number?", "The Roman numeral {v} is what number?", "{v} as a normal number",
        "What is the value of the Roman numeral {v}?", "Read the Roman numeral {v}.",
        "Which number do the Romans write as {v}?", "What number did the Romans write as {v}?",
        "The Romans wrote {v}. Which number is it?", "{v} was written in Rome for which number?",
        "What is the Roman {v}?", "Roman {v} is what number?"], 0.7),
]
TABLES = [replace(table, phrasings=expanded([*table.phrasings, *MORE.get(table.name, [])]))
          for table in _TABLES]
BY_NAME = {table.name: table for table in TABLES}
_WEIGHTS = [table.weight for table in TABLES]
_KEEP_CASE = {"symbol", "element", "roman to number"}
_PLURALS = dict(facts.PLURALS)
_ORDINALS = ("first second third fourth fifth sixth seventh eighth ninth tenth eleventh "
             "twelfth").split()
_SHORT = "1st 2nd 3rd 4th 5th 6th 7th 8th 9th 10th 11th 12th".split()


def with_article(noun: str) -> str:
    return f"{'an' if noun[0].lower() in 'aeiou' else 'a'} {noun}"


def _plural(noun: str) -> str:
    if noun in _PLURALS:
        return _PLURALS[noun]
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")


def _ordinal(draw: Draw, value: str) -> str:
    at = int(value) - 1 if value.isdigit() else 12
    return draw.rng.choice((_ORDINALS[at], _SHORT[at])) if at < 12 else value


def _shown(draw: Draw, table: Table, key: str) -> str:
    """A key as people type it: without “the”, in quotes, two colours with “with”."""
    if table.name == "mix":
        return key.replace(" and ", draw.rng.choice((" and ", " and ", " and ", " with ", " + ")))
    if key.startswith("the ") and table.name != "colour" and draw.rng.random() < 0.3:
        return key[4:]
    if table.name == "number word" and draw.rng.random() < 0.3:
        return key.replace("-", " ")
    quoted = table.name in ("opposite", "plural", "past") and draw.rng.random() < 0.06
    return draw.rng.choice(("'{}'", '"{}"')).format(key) if quoted else key


def answer_of(table: Table, key: str, value: str) -> str:
    text = table.answer.format(k=key, v=value, ak=with_article(key))
    return text[0].upper() + text[1:]


def asked(draw: Draw, table: Table, phrasing: str, key: str, value: str) -> str:
    shown = _shown(draw, table, key)
    return ask(draw.rng, phrasing, keep_case=table.name in _KEEP_CASE, k=shown, v=value,
               ak=with_article(key), ks=_plural(key), no=_ordinal(draw, value))


def fact(draw: Draw, table: Table | None = None) -> Dialogue:
    table = table or draw.rng.choices(TABLES, _WEIGHTS)[0]
    key, value = draw.rng.choice(table.facts)
    question = asked(draw, table, draw.phrasing(table.phrasings), key, value)
    return question_and_answer(FAMILY, table.name, question, answer_of(table, key, value))


def _task(table: Table) -> Callable[[Draw], Dialogue]:
    def ask_about(draw: Draw) -> Dialogue:
        return fact(draw, table)

    ask_about.__name__ = table.name
    return ask_about


TASKS = [(_task(table), table.weight) for table in TABLES]
