"""Letters: spell a word, turn it round, count, join, sort. Always spell out first, then answer."""

from .arithmetic import listed
from .dialogue import Dialogue, Draw, question_and_answer
from .noise import ask
from .words import any_word

FAMILY = "letters"
ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"]


def word(draw: Draw, longest: int = 0) -> str:
    """To nine letters; now and then a longer one in training, which nothing promises."""
    if not longest:
        longest = 12 if not draw.held_out and draw.rng.random() < 0.06 else 9
    return draw.operands(lambda rng: any_word(rng, longest), lambda word: ("word", word))


def typed(draw: Draw, word: str) -> str:
    """Now and then with a capital or in quotes; the reply is in small letters all the same."""
    chance = draw.rng.random()
    word = word.capitalize() if chance < 0.08 else word.upper() if chance < 0.1 else word
    if draw.rng.random() < 0.1:
        word = draw.rng.choice(("'{}'", '"{}"', "“{}”", "*{}*")).format(word)
    return word


def spelled(word: str) -> str:
    return "-".join(word)


_SPELL = ["Spell {w}.", "Spell the word {w}.", "How do [you|I|we] spell {w}?", "Spell out {w}.",
          "Can you spell {w}[ for me|]?", "What are the letters of {w}?", "spell: {w}",
          "{w} spelled",
          "Give me the letters in {w}.", "spell {w}", "Please spell {w}.",
          "{w}, how is it spelled?",
          "Write {w} letter by letter.", "[Could|Would|Will] you [please |]spell [out |]{w}?",
          "How is {w} [spelled|written|spelt]?", "What is the spelling of {w}?", "spelling of {w}",
          "I need the spelling of {w}.", "Split {w} into letters.", "letters of {w}",
          "{w}: spell it",
          "Say the letters of {w} one by one.", "How would you spell [the word |]{w}?",
          "How does one spell {w}?", "Which letters are in {w}?", "I want to spell {w}.",
          "Tell me how to spell {w}.", "I can't spell {w}.", "Spell this word: {w}",
          "Do you know how to spell {w}?", "{w} letter by letter", "Help me spell {w}."]


def spell(draw: Draw) -> Dialogue:
    w = word(draw)
    question = ask(draw.rng, draw.rng.choice(_SPELL), w=typed(draw, w))
    return question_and_answer(FAMILY, "spell", question, spelled(w))


_BACKWARDS = ["Spell {w} backwards.", "Reverse the word {w}.", "What is {w} backwards?",
              "Write {w} [backwards|in reverse|from the end|from right to left].", "Reverse {w}.",
              "Turn {w} around.", "{w} backwards", "[the word |]{w} in reverse", "{w} reversed",
              "Can you [reverse|flip|turn around] [the letters of |the word |]{w}?",
              "Say {w} backwards.", "backwards: {w}", "reverse: {w}", "What is the reverse of {w}?",
              "[How|What] does {w} look backwards?", "Read {w} from [the back|right to left].",
              "How do you [spell|write|say] {w} backwards?", "{w}, but backwards", "Mirror {w}.",
              "[Can|Could|Would] you [spell|write|say] {w} backwards?", "Flip the word {w}.",
              "What would {w} be backwards?", "What does {w} give backwards?", "reverse of {w}",
              "If I read {w} backwards, what is it?", "Spell the word {w} in reverse order.",
              "Give me {w} with its letters in reverse order.", "{w} the other way round"]


def reply_backwards(w: str) -> str:
    return f"{spelled(w)}, backwards {spelled(w[::-1])}: {w[::-1]}"


def backwards(draw: Draw) -> Dialogue:
    w = word(draw)
    question = ask(draw.rng, draw.rng.choice(_BACKWARDS), w=typed(draw, w))
    return question_and_answer(FAMILY, "backwards", question, reply_backwards(w))


_LENGTH = ["How many letters does {w} have?", "How many letters are in {w}?",
           "{w}: how many letters?",
           "How long is the word {w}?", "Count the letters [in|of] {w}.",
           "What is the length of {w}?",
           "How many letters in {w}?", "Number of letters in {w}?",
           "{w}, how many letters is that?",
           "How many letters [has|make up|are there in|do I need for] [the word |]{w}?",
           "length of [the word |]{w}", "letter count of {w}", "Can you count the letters in {w}?",
           "What is the number of letters in {w}?", "How many characters [are in|has] {w}?",
           "The word {w} has how many letters?", "With how many letters do you write {w}?",
           "Tell me how many letters {w} has.", "How many letters is {w}?", "count letters: {w}",
           "Out of how many letters is {w} made?"]


def reply_length(w: str) -> str:
    return f"{spelled(w)}: {len(w)} letters."


def length(draw: Draw) -> Dialogue:
    w = word(draw)
    question = ask(draw.rng, draw.rng.choice(_LENGTH), w=typed(draw, w))
    return question_and_answer(FAMILY, "length", question, reply_length(w))


_COUNT = ["How many {l}'s are in {w}?", "How often does {l} appear in {w}?", "{l}'s in {w}?",
          "Count the {l}s in {w}.", "How many {l} are [there |]in [the word |]{w}?",
          "How many times does [the letter |]{l} [occur|appear|come|show up|stand] in {w}?",
          "How many {l} in {w}?", "How many times is {l} in {w}?", "count {l} in {w}",
          "Count the letter {l} in the word {w}.", "How many {l}s [does|has] {w}[ have|]?",
          "In {w}, how many {l} are there?", "How often is [the letter |]{l} [used |]in {w}?",
          "What is the number of {l} in {w}?", "The letter {l}: how often is it in {w}?",
          "How many letters {l} are in {w}?", "Can you count the {l}'s in {w}?",
          "{w}: how many {l}?",
          "How many of the letters in {w} are {l}?", "Tell me how many {l} are in {w}."]


def count(draw: Draw) -> Dialogue:
    w = word(draw)
    if draw.rng.random() < 0.75:
        letter = draw.rng.choice(w)
    else:
        letter = draw.rng.choice("abcdefghijklmnopqrstuvwxyz")
    n_times = w.count(letter)
    times = "once" if n_times == 1 else "never" if n_times == 0 else f"{n_times} times"
    question = ask(draw.rng, draw.rng.choice(_COUNT), w=typed(draw, w), l=letter)
    return question_and_answer(FAMILY, "count", question, f"{spelled(w)}: {letter} {times}.")


_NTH = ["What is the {n} letter of {w}?", "Which letter is {n} in {w}?", "{n} letter of {w}",
        "Give me the {n} letter of {w}.", "Tell me the {n} letter in the word {w}.",
        "[What|Which] is the {n} letter [of|in] [the word |]{w}?", "{w}, {n} letter?",
        "In {w}, what is the {n} letter?", "[Which|What] letter comes {n} in {w}?",
        "the {n} letter of {w}", "What's the {n} letter in {w}?", "{w}: {n} letter",
        "{n} letter {w}",
        "Do you know the {n} letter of {w}?", "Look at {w}. What is the {n} letter?",
        "Say the {n} letter of {w}.", "Which is {w}'s {n} letter?", "Pick the {n} letter of {w}."]
_FIRST = ["What letter does {w} begin with?", "With which letter does {w} start?",
          "[What|Which] letter [starts|begins] {w}?", "{w} starts with which letter?",
          "Which letter is at the [beginning|start] of {w}?", "initial letter of {w}",
          "{w} begins with?", "At the start of {w} stands which letter?",
          "The word {w} begins with which letter?", "What is {w}'s initial?",
          "On what letter does {w} start?", "Which letter do I write first for {w}?"]
_LAST = ["What is the final letter of {w}?", "With which letter does {w} end?",
         "[What|Which] letter [ends|closes|finishes] {w}?", "{w} ends with which letter?",
         "Which letter is at the end of {w}?", "final letter of {w}", "{w} ends in?",
         "At the end of {w} stands which letter?", "The word {w} ends with which letter?",
         "In what letter does {w} end?", "On which letter does {w} stop?",
         "Which letter do I write last for {w}?"]
_SHORT = "1st 2nd 3rd 4th 5th 6th 7th 8th 9th".split()


def nth(draw: Draw) -> Dialogue:
    w = word(draw, 9)
    at = draw.rng.choice((0, len(w) - 1, draw.rng.randrange(len(w))))
    last = at == len(w) - 1 and draw.rng.random() < 0.6
    name = "last" if last else ORDINALS[at]
    shown = name if last or draw.rng.random() < 0.7 else _SHORT[at]
    phrasings = _NTH
    if name in ("first", "last") and draw.rng.random() < 0.45:
        phrasings = _FIRST if name == "first" else _LAST
    question = ask(draw.rng, draw.rng.choice(phrasings), w=typed(draw, w), n=shown)
    answer = f"{spelled(w)}: the {name} letter is {w[at]}."
    return question_and_answer(FAMILY, "nth letter", question, answer)


_JOIN = ["Join these letters: {s}", "What word is {s}?", "Which word do the letters {s} make?",
         "Put {s} together.", "Join {s}.", "What does {s} spell?", "Make a word of {s}.", "{s}",
         "[What|Which] word [is spelled|do I get from|comes from|gives] {s}?", "join {s}",
         "The letters {s} make which word?", "Read these letters as a word: {s}",
         "{s} is what word?",
         "Combine the letters {s}.", "{s} together?", "Glue {s} together.", "letters to word: {s}",
         "Write {s} as one word.", "If I put {s} together, what is it?", "{s}: which word?",
         "I have the letters {s}. What word is it?", "{s}, what word is spelled here?",
         "Can you read this word: {s}", "What word is made of the letters {s}?",
         "Make one word out of {s}", "Spell together: {s}", "Connect {s}"]


def join(draw: Draw) -> Dialogue:
    w = word(draw)
    separator = draw.rng.choice((" ", "-", ", ", " ", " - ", ".", " + "))
    question = ask(draw.rng, draw.rng.choice(_JOIN), s=separator.join(w))
    return question_and_answer(FAMILY, "join", question, w)


_CAPITALS = ["Write {w} in [capital letters|capitals|upper case|big letters].", "uppercase {w}",
             "Put {w} in upper case.", "Make {w} [uppercase|upper case|all capitals].",
             "{w} in [capitals|capital letters|upper case|big letters]",
             "capitalise {w} completely",
             "How does {w} look in capital letters?", "Uppercase {w}.", "{w} with capital letters",
             "What is {w} in [capital letters|capitals|upper case]?", "{w} all in capitals",
             "Convert {w} to [uppercase|upper case|capital letters|capitals].", "caps: {w}",
             "[Can|Could] you write {w} in [capitals|capital letters|upper case]?", "{w} uppercase",
             "Show {w} in [capitals|capital letters].", "Change {w} to big letters.",
             "I want {w} in capital letters.", "Write the word {w} [only |]with capitals.",
             "Shout {w} in capitals."]


def capitals(draw: Draw) -> Dialogue:
    w = word(draw)
    question = ask(draw.rng, draw.rng.choice(_CAPITALS), keep_case=True, w=w)
    answer = f"{spelled(w.upper())}: {w.upper()}"
    return question_and_answer(FAMILY, "capitals", question, answer)


_SORT = ["Sort these words: {items}", "Sort alphabetically: {items}", "alphabetical: {items}",
         "Put {items} in alphabetical order.", "Order these words by the alphabet: {items}",
         "Sort {items} from a to z.", "Alphabetical order: {items}", "Sort {items} alphabetically.",
         "[Sort|Order|Arrange] the words {items}[ alphabetically| by alphabet| from A to Z|].",
         "Can you [sort|order|arrange] {items}[ alphabetically| by the alphabet|]?",
         "{items} sorted",
         "[Bring|Put|Get] these words in[to|] [alphabetical |]order: {items}", "{items} a-z",
         "What is the alphabetical order of {items}?", "How are {items} sorted alphabetically?",
         "List {items} in alphabetical order.", "Which order do {items} have in the alphabet?",
         "alphabetically: {items}", "Sort these by letter: {items}", "order by alphabet {items}",
         "Rank {items} alphabetically.", "Here are words, sort them: {items}",
         "In alphabetical order, please: {items}", "{items} - alphabetical order please"]


def sort_words(draw: Draw) -> Dialogue:
    def make(rng):
        words = {any_word(rng, 7) for _ in range(rng.randint(3, 6))}
        return rng.sample(sorted(words), len(words))

    items = draw.operands(make, lambda words: ("sort", *sorted(words)))
    question = ask(draw.rng, draw.rng.choice(_SORT), items=listed(draw, items))
    return question_and_answer(FAMILY, "sort words", question, ", ".join(sorted(items)))


_STARTS = ["Does {w} [start|begin] with {l}?", "Does the word {w} [start|begin] with [an |a |]{l}?",
           "Is {l} the first letter of {w}?", "{w} starts with {l}, right?", "{w} begins with {l}?",
           "Is the first letter of {w} [an |a |]{l}?", "Is there [an |a |]{l} at the start of {w}?",
           "Tell me if {w} starts with {l}.", "Do I write {w} with [an |a |]{l} at the start?",
           "Is it true that {w} starts with {l}?", "Has {w} {l} as its first letter?",
           "Would you say {w} begins with {l}?"]
_HAS = ["Does {w} contain [the letter |an |a |]{l}?", "Is there [an |a |]{l} in {w}?",
        "Does {w} have [an |a |the letter ]{l}[ in it|]?", "Is the letter {l} in {w}?",
        "{l} in {w}?",
        "Do you [find|see] [an |a |]{l} in {w}?", "Has {w} got [an |a |]{l}?", "{w} contains {l}?",
        "Is {l} [part|one] of [the letters of |]{w}?", "Do I need [an |a |]{l} for {w}?",
        "Can you find [an |a |the letter ]{l} in {w}?", "Tell me if there is [an |a |]{l} in {w}.",
        "Is {w} written with [an |a |]{l}?", "Does the word {w} include [the letter |]{l}?"]


def yes_or_no(draw: Draw) -> Dialogue:
    w = word(draw)
    letter = draw.rng.choice(w[0] * 2 + w + "abcdefghijklmnopqrstuvwxyz"[: len(w)])
    starts = draw.rng.random() < 0.5
    yes = w[0] == letter if starts else letter in w
    question = ask(draw.rng, draw.rng.choice(_STARTS if starts else _HAS), w=typed(draw, w),
                   l=letter)
    answer = f"{spelled(w)}: {'yes' if yes else 'no'}."
    return question_and_answer(FAMILY, "yes or no", question, answer)


TASKS = [(spell, 4), (backwards, 5), (length, 3), (count, 3), (nth, 3), (join, 4), (capitals, 2),
         (sort_words, 4), (yes_or_no, 1.5)]
