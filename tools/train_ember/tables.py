"""Small tables of facts. The facts are seen in training; the last fifth of the phrasings is not."""

from dataclasses import dataclass

from . import facts
from .dialogue import Dialogue, Draw, question_and_answer
from .noise import ask

FAMILY = "tables"


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    facts: list[tuple[str, str]]
    answer: str
    phrasings: list[str]
    weight: float = 1.0


TABLES = [
    Table("capital", facts.CAPITALS, "The capital of {k} is {v}.", [
        "What is the capital of {k}?", "Which city is the capital of {k}?", "capital of {k}",
        "Tell me the capital of {k}.", "What's {k}'s capital?", "{k}'s capital city?",
        "Do you know the capital of {k}?", "Name the capital of {k}.", "{k}: capital?",
        "The capital of {k} is which city?", "What city is the capital of {k}?",
        "Can you name the capital city of {k}?", "I need the capital of {k}."], 4),
    Table("country of a capital", facts.CAPITALS, "{v} is the capital of {k}.", [
        "{v} is the capital of which country?", "Which country has {v} as its capital?",
        "What country is {v} the capital of?", "{v} is the capital of what country?",
        "Name the country whose capital is {v}.", "Of which country is {v} the capital?",
        "Which country's capital is {v}?", "Whose capital is {v}?",
        "Tell me which country {v} is the capital of.", "{v} is which country's capital?"], 2),
    Table("continent", facts.CONTINENTS, "{k} is in {v}.", [
        "Which continent is {k} in?", "What continent is {k} in?", "On which continent is {k}?",
        "{k} is on which continent?", "Where is {k}?", "In which continent does {k} lie?",
        "continent of {k}", "Tell me the continent of {k}.", "Name {k}'s continent.",
        "{k}: which continent?", "What continent does {k} belong to?"], 2),
    Table("language", facts.LANGUAGES, "In {k} people speak {v}.", [
        "What language do people speak in {k}?", "Which language is spoken in {k}?",
        "What do they speak in {k}?", "What is the language of {k}?", "language of {k}",
        "Tell me the language of {k}.", "What language is spoken in {k}?",
        "Which language do they speak in {k}?", "In {k}, which language is spoken?"]),
    Table("symbol", facts.ELEMENTS + facts.HEAVY, "The symbol of {k} is {v}.", [
        "What is the chemical symbol of {k}?", "What is the symbol for {k}?", "symbol of {k}",
        "Which symbol does {k} have?", "Chemical symbol for {k}?", "What is {k}'s symbol?",
        "Give me the symbol of {k}.", "How is {k} written in chemistry?",
        "Tell me the chemical symbol for {k}.", "Which chemical symbol stands for {k}?"], 2),
    Table("element", facts.ELEMENTS + facts.HEAVY, "{v} is {k}.", [
        "Which element has the symbol {v}?", "What element is {v}?", "Which element is {v}?",
        "What does the chemical symbol {v} stand for?", "The symbol {v} is which element?",
        "Name the element with the symbol {v}.", "{v} stands for which element?",
        "What is the element {v}?", "Which chemical element is written {v}?"], 1.5),
    Table("atomic number", facts.ELEMENT_NUMBERS, "The atomic number of {k} is {v}.", [
        "What is the atomic number of {k}?", "Which atomic number does {k} have?",
        "atomic number of {k}", "How many protons does {k} have?", "{k}: atomic number?",
        "Tell me the atomic number of {k}.", "What number is {k} in the periodic table?",
        "Give me {k}'s atomic number.", "What is {k}'s atomic number?"]),
    Table("opposite", facts.OPPOSITES, "The opposite of {k} is {v}.", [
        "What is the opposite of {k}?", "opposite of {k}", "Tell me the opposite of {k}.",
        "Which word is the opposite of {k}?", "What is the reverse of {k} in meaning?",
        "Give me the opposite of {k}.", "Name the opposite of {k}.", "{k}: opposite?",
        "Can you tell me the opposite of {k}?", "What word means the opposite of {k}?"], 2),
    Table("plural", facts.PLURALS, "The plural of {k} is {v}.", [
        "What is the plural of {k}?", "plural of {k}", "Tell me the plural of {k}.",
        "One {k}, two ...?", "What do you call more than one {k}?", "Give the plural of {k}.",
        "What is the plural form of {k}?", "How do you form the plural of {k}?",
        "Can you give me the plural of {k}?", "Which word is the plural of {k}?"], 1.5),
    Table("past", facts.PAST, "The past tense of {k} is {v}.", [
        "What is the past tense of {k}?", "past tense of {k}", "What is the past of {k}?",
        "Tell me the past tense of {k}.", "Give the past tense of {k}.", "{k} in the past tense",
        "Put {k} in the past tense.", "What is the simple past of {k}?",
        "Which word is the past tense of {k}?"], 1.5),
    Table("colour", facts.COLOURS, "The colour of {k} is {v}.", [
        "What colour is {k}?", "Which colour is {k}?", "What color is {k}?", "colour of {k}",
        "What is the colour of {k}?", "Tell me the colour of {k}.", "Which color is {k}?",
        "{k}: what colour?", "What colour does {k} have?"]),
    Table("mix", facts.MIXES, "{k} make {v}.", [
        "What colour do you get from {k}?", "Mix {k}: what colour is that?", "What do {k} make?",
        "Which colour do {k} make?", "What is the mix of {k}?", "If I mix {k}, what do I get?",
        "What colour is {k} mixed?", "Mixing {k} gives which colour?",
        "Which colour comes from mixing {k}?"]),
    Table("young", facts.YOUNG, "A young {k} is called a {v}.", [
        "What is a young {k} called?", "What is a baby {k} called?", "How do you call a young {k}?",
        "What do you call a baby {k}?", "baby {k}?", "Name the young of a {k}.",
        "What is the young of a {k}?", "What is the word for a young {k}?",
        "Which word means a young {k}?"]),
    Table("sound", facts.SOUNDS, "The {k} says {v}.", [
        "What sound does a {k} make?", "What does the {k} say?", "What does a {k} say?",
        "Which sound does a {k} make?", "How does a {k} sound?", "What noise does a {k} make?",
        "sound of a {k}", "Tell me the sound of a {k}.", "Which noise does the {k} make?"]),
    Table("legs", facts.LEGS, "Legs of a {k}: {v}.", [
        "How many legs does a {k} have?", "How many legs has a {k}?", "Number of legs of a {k}?",
        "A {k} has how many legs?", "Count the legs of a {k}.", "legs of a {k}",
        "How many legs are on a {k}?", "What number of legs does a {k} have?",
        "Tell me how many legs a {k} has."]),
    Table("sides", facts.SIDES, "A {k} has {v} sides.", [
        "How many sides does a {k} have?", "How many sides has a {k}?", "A {k} has how many sides?",
        "Number of sides of a {k}?", "sides of a {k}", "How many corners does a {k} have?",
        "Count the sides of a {k}.", "How many edges does a {k} have?",
        "Tell me how many sides a {k} has."]),
    Table("planet", facts.PLANETS, "{k} is planet number {v} from the Sun.", [
        "Which planet from the Sun is {k}?", "What number is {k} from the Sun?",
        "{k} is which planet from the Sun?", "Where does {k} come among the planets?",
        "What place does {k} have among the planets?", "position of {k} from the Sun",
        "What position is {k} from the Sun?", "How many planets from the Sun is {k}?",
        "At which place from the Sun is {k}?"], 0.7),
    Table("planet by number", facts.PLANETS, "Planet number {v} from the Sun is {k}.", [
        "Which planet is number {v} from the Sun?", "What is planet number {v} from the Sun?",
        "Name planet {v} from the Sun.", "planet number {v}", "What is planet {v}?",
        "Which planet comes at place {v} from the Sun?", "Planet {v} from the Sun?",
        "Tell me planet number {v}.", "Which is planet number {v}?"], 0.7),
    Table("month length", facts.MONTH_LENGTHS, "{k} has {v} days.", [
        "How many days does {k} have?", "How many days are in {k}?", "How long is {k}?",
        "{k} has how many days?", "days in {k}", "Number of days in {k}?",
        "How many days are there in {k}?", "What is the number of days of {k}?",
        "Tell me how many days {k} has."]),
    Table("month number", facts.MONTH_NUMBERS, "{k} is month number {v}.", [
        "Which month of the year is {k}?", "What number is the month {k}?", "{k} is month number?",
        "What is the number of {k}?", "Which number does the month of {k} have?",
        "{k} as a month number", "What month number is {k}?", "Tell me the number of {k}.",
        "Give me the month number of {k}."], 0.7),
    Table("next letter", facts.NEXT_LETTERS, "After {k} comes {v}.", [
        "Which letter comes after {k}?", "What letter comes after {k}?", "letter after {k}",
        "What comes after the letter {k}?", "Which letter follows {k}?", "What letter follows {k}?",
        "The letter after {k}?", "Tell me the letter after {k}.",
        "What is the next letter after {k}?"]),
    Table("number word", facts.NUMBER_WORDS, "{k} is {v}.", [
        "Write {k} as a number.", "Write {k} in digits.", "What number is {k}?", "{k} in digits",
        "{k} as a number", "How do you write {k} in digits?", "Put {k} in digits.",
        "What is {k} in digits?", "Give me {k} as a number."]),
    Table("roman", facts.ROMAN, "{k} in Roman numerals is {v}.", [
        "What is {k} in Roman numerals?", "Write {k} in Roman numerals.", "{k} in Roman numerals",
        "{k} as a Roman numeral", "What is the Roman numeral for {k}?", "Roman numeral of {k}?",
        "How do you write {k} in Roman numerals?", "Give me {k} in Roman numerals.",
        "Which Roman numeral is {k}?"]),
]
_WEIGHTS = [table.weight for table in TABLES]
_KEEP_CASE = {"symbol", "element"}


def fact(draw: Draw, table: Table | None = None) -> Dialogue:
    table = table or draw.rng.choices(TABLES, _WEIGHTS)[0]
    key, value = draw.rng.choice(table.facts)
    question = ask(draw.rng, draw.phrasing(table.phrasings), keep_case=table.name in _KEEP_CASE,
                   k=key, v=value)
    answer = table.answer.format(k=key, v=value)
    return question_and_answer(FAMILY, table.name, question, answer[0].upper() + answer[1:])


TASKS = [(fact, 1)]
