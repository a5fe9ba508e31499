"""Questions as people type them: lower case, no punctuation, typos, “whats”, “pls”.

Noise touches the words of the phrasing only; operands in {braces} are put in afterwards, so that
a question always still asks for the answer that its dialogue gives.
"""

import random
import re

_FIELD = re.compile(r"(\{\w+\})")
_WORD = re.compile(r"[A-Za-z]{4,}")
_CONTRACTIONS = [
    (re.compile(r"^What is\b"), ("whats", "What's", "what's", "Whats")),
    (re.compile(r"^Who is\b"), ("whos", "Who's", "who's")),
    (re.compile(r"^How many\b"), ("how many", "How mny", "howmany")),
    (re.compile(r"^Can you\b"), ("can u", "could you", "Could you")),
    (re.compile(r"^Which\b"), ("which", "wich")),
    (re.compile(r"\byou\b"), ("u", "you")),
    (re.compile(r"\bbackwards\b"), ("backward", "in reverse", "reversed")),
]
_BEFORE = ("please ", "pls ", "Please ", "hey, ", "Hi, ", "ok, ", "ok so ", "Ember, ", "so ",
           "quick question: ", "tell me: ", "Hi Ember, ", "Question: ", "now ")
_AFTER = (" please", " pls", " thanks", " plz", ", please", ", thanks", " thx")


def _typo(text: str, rng: random.Random) -> str:
    words = list(_WORD.finditer(text))
    if not words:
        return text
    word = rng.choice(words)
    at = rng.randrange(word.start() + 1, word.end() - 1)
    kind = rng.randrange(3)
    if kind == 0:
        return text[:at] + text[at + 1 :]
    if kind == 1:
        return text[:at] + text[at + 1] + text[at] + text[at + 2 :]
    return text[:at] + text[at] + text[at:]


def ask(rng: random.Random, phrasing: str, *, keep_case: bool = False, **operands: object) -> str:
    """Fill a phrasing's {fields}, with noise on the words around them in half of the cases."""
    if rng.random() < 0.5:
        return phrasing.format(**operands)
    for pattern, replacements in _CONTRACTIONS:
        if rng.random() < 0.35:
            phrasing = pattern.sub(rng.choice(replacements), phrasing)
    ending = ""
    while phrasing and phrasing[-1] in ".?!":
        phrasing, ending = phrasing[:-1], phrasing[-1] + ending
    if rng.random() < 0.35:
        ending = rng.choice(("", "", "", "?", "??", " ?", ".", "!"))
    before = rng.choice(_BEFORE) if rng.random() < 0.15 else ""
    after = rng.choice(_AFTER) if rng.random() < 0.12 else ""
    if before and rng.random() < 0.7:
        phrasing = phrasing[:1].lower() + phrasing[1:]
    parts = _FIELD.split(phrasing)
    if rng.random() < 0.15:
        at = rng.randrange(0, len(parts), 2)
        parts[at] = _typo(parts[at], rng)
    case = rng.random()
    change = str.lower if case < 0.35 else str.upper if case < 0.38 else str
    done = []
    for index, part in enumerate(parts):
        if index % 2:
            value = str(operands[part[1:-1]])
            done.append(value if keep_case else change(value))
        else:
            done.append(change(part))
    text = change(before) + "".join(done) + change(after) + ending
    if rng.random() < 0.03:
        text = text.replace(" ", "  ", 1)
    return text
