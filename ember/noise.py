"""Questions as people type them: lower case, no punctuation, typos, “whats”, “pls”, a lead-in.

Noise touches the words of the phrasing only; operands in {braces} are put in afterwards, so that
a question always still asks for the answer that its dialogue gives. A phrasing may leave words
open: of “[What is|Tell me] the capital” one is drawn.
"""

import random
import re

from .word_lists import lines

_FIELD = re.compile(r"(\{\w+\})")
_OPTIONS = re.compile(r"\[([^\]]*)\]")
_WORD = re.compile(r"[A-Za-z]{4,}")
_CONTRACTIONS = [
    (re.compile(r"\b[Ww]hat is\b"), ("whats", "What's", "what's", "Whats", "wats", "what is")),
    (re.compile(r"\b[Ww]ho is\b"), ("whos", "Who's", "who's", "who is")),
    (re.compile(r"\b[Hh]ow is\b"), ("hows", "How's", "how's")),
    (re.compile(r"\b[Ww]hat's\b"), ("whats", "what is", "What is")),
    (re.compile(r"\b[Hh]ow many\b"), ("how many", "How mny", "howmany", "how many")),
    (re.compile(r"^Can you\b"), ("can u", "could you", "Could you", "can you", "Would you")),
    (re.compile(r"\b[Ww]hich\b"), ("which", "wich", "what")),
    (re.compile(r"\b[Tt]ell me\b"), ("tell me", "give me", "I want to know", "say")),
    (re.compile(r"\byou\b"), ("u", "you", "ya")),
    (re.compile(r"\byour\b"), ("ur", "your")),
    (re.compile(r"\bare\b"), ("r", "are")),
    (re.compile(r"\bbackwards\b"), ("backward", "in reverse", "reversed")),
    (re.compile(r"\bdoes\b"), ("dose", "does")),
    (re.compile(r"n't\b"), ("nt", "n’t")),
    (re.compile(r"'s\b"), ("’s", "s", "'s")),
    (re.compile(r"\bcolour\b"), ("color", "colour")),
]
_BEFORE = (
    "please ",
    "pls ",
    "Please ",
    "hey, ",
    "Hi, ",
    "ok, ",
    "ok so ",
    "Ember, ",
    "so ",
    "quick question: ",
    "tell me: ",
    "Hi Ember, ",
    "Question: ",
    "now ",
    "hello, ",
    "and ",
    "um, ",
    "well, ",
    "Hey Ember, ",
    "okay ",
    "next one: ",
    "Next: ",
    "one more: ",
    "yo ",
    "then ",
    "but ",
    "Hello! ",
    "sorry, ",
    "hmm ",
    "ember: ",
    "also, ",
)
_LEADS = tuple(lines("noise", "leads"))
_AFTER = (
    " please",
    " pls",
    " thanks",
    " plz",
    ", please",
    ", thanks",
    " thx",
    " ember",
    ", Ember",
    " now",
    " again",
    " for me",
    " right?",
    " thank you",
    ", do you know",
    " pleaseee",
    " tho",
)
_AFTERWORDS = (
    " I forgot.",
    " Just the answer.",
    " I need it for school.",
    " Thank you!",
    " Do you know?",
    " Can you help me?",
    " Thanks in advance!",
    " I am not sure.",
    " Please be quick.",
    " That's all.",
    " Tell me.",
    " I can't remember.",
    " :)",
    " lol",
)
_ENDINGS = ("", "", "", "", "?", "??", " ?", ".", "!", "...", " ??", "?!")
_PLAIN_ENDINGS = ("", "", "", "", ".", "!", "...", "!!")
_NEAR = dict(zip("qwertyuiopasdfghjklzxcvbnm", "wertyuiopqsdfghjklaxcvbnmz", strict=True))
_QUESTION = re.compile(r"(?i)(what|which|who|how|where|when|why|is|are|does|do)\b")


def _typo(text: str, rng: random.Random) -> str:
    words = list(_WORD.finditer(text))
    if not words:
        return text
    word = rng.choice(words)
    at = rng.randrange(word.start() + 1, word.end() - 1)
    kind = rng.randrange(5)
    if kind == 0:
        return text[:at] + text[at + 1 :]
    if kind == 1:
        return text[:at] + text[at + 1] + text[at] + text[at + 2 :]
    if kind == 2:
        return text[:at] + _NEAR.get(text[at], text[at]) + text[at + 1 :]
    if kind == 3 and word.end() < len(text) and text[word.end()] == " ":
        return text[: word.end()] + text[word.end() + 1 :]
    return text[:at] + text[at] + text[at:]


def is_question(text: str) -> bool:
    return text.endswith("?") or _QUESTION.match(text) is not None


def ask(
    rng: random.Random,
    phrasing: str,
    *,
    keep_case: bool = False,
    around: bool = True,
    **operands: object,
) -> str:
    """Fill a phrasing's {fields}, with noise on the words around them in half of the cases.

    Without `around`, no words come before or after it and no question mark: “thanks”, “no”.
    """
    if "[" in phrasing:
        phrasing = _OPTIONS.sub(lambda found: rng.choice(found[1].split("|")), phrasing)
    if rng.random() < 0.45:
        return phrasing.format(**operands)
    for pattern, replacements in _CONTRACTIONS:
        if rng.random() < 0.35:
            phrasing = pattern.sub(rng.choice(replacements), phrasing)
    ending = ""
    while phrasing and phrasing[-1] in ".?!":
        phrasing, ending = phrasing[:-1], phrasing[-1] + ending
    if rng.random() < 0.4:
        ending = rng.choice(_ENDINGS if around else _PLAIN_ENDINGS)
    before = after = ""
    chance = rng.random() if around else 1.0
    if chance < 0.15:
        before = rng.choice(_BEFORE)
    elif chance < 0.23 and _QUESTION.match(phrasing):
        before = rng.choice(_LEADS)
    if before and rng.random() < 0.8:
        phrasing = phrasing[:1].lower() + phrasing[1:]
    chance = rng.random() if around else 1.0
    if chance < 0.12:
        after = rng.choice(_AFTER)
    elif chance < 0.16:
        ending = (ending or ".") + rng.choice(_AFTERWORDS)
    parts = _FIELD.split(phrasing)
    if rng.random() < 0.2:
        for _ in range(rng.choice((1, 1, 2))):
            at = rng.randrange(0, len(parts), 2)
            parts[at] = _typo(parts[at], rng)
    case = rng.random()
    change = str.lower if case < 0.42 else str.upper if case < 0.45 else str
    done = []
    for index, part in enumerate(parts):
        if index % 2:
            value = str(operands[part[1:-1]])
            done.append(value if keep_case else change(value))
        else:
            done.append(change(part))
    text = change(before) + "".join(done) + change(after) + ending
    chance = rng.random()
    if chance < 0.03:
        text = text.replace(" ", "  ", 1)
    elif chance < 0.05:
        text += rng.choice((" ", "\n"))
    elif chance < 0.06:
        text = " " + text
    return text
