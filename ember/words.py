"""Words to spell, and invented words and names, made from syllables."""

import random
import re
from pathlib import Path

COMMON = """
able about above acorn actor after again agent alarm alert alone amber anchor angel animal answer
ant apple april apron arm arrow ash atlas aunt autumn awake baby back badge bag baker ball bamboo
banana band bank barn basket bath beach bean bear beard beaver bed bee bell belt bench berry bike
bird black blanket block blue boat body bone book boot bottle bowl box boy branch brave bread
breeze brick bridge bright broom brother brown brush bucket button cabin cable cactus cage cake
camel camera camp candle candy canoe cap captain car card carpet carrot cart castle cat cave chair
chalk cheese cherry chess chicken child circle city clay clean clever cliff clock cloth cloud
clover coach coal coast coat cocoa coffee coin cold colour comet cook copper coral corn corner
cotton couch country cousin cow crab crane cream crow crown cup curtain dance dark dawn day deer
desert desk diamond dinner doctor dog doll dolphin donkey door dragon dream dress drum duck dust
eagle ear earth east egg eight elbow elephant ember empty engine evening eye fabric face fairy
family farm farmer feather fence fern field finger fire fish five flag flame flock floor flour
flower flute fog foot forest fork fox frame friend frog frost fruit game garage garden gate ghost
giant giraffe girl glass glove goat gold goose grape grass gravel green guitar hair hammer hand
harbour hat hawk hazel head heart hedge helmet hen hill honey hook horn horse hotel house hunter
ice igloo ink iron island ivory jacket jaguar jam jar jelly jewel juice jungle kettle key king
kitchen kite kitten knee knife ladder lake lamp lantern leaf lemon letter light lily lion lizard
llama lock lunch machine magnet map maple marble market mask meadow melon metal milk mirror money
monkey month moon morning moss mother mountain mouse mouth music nail name napkin neck needle nest
night noodle north nose nurse oak ocean olive onion orange orbit otter oven owl paddle page paint
palace palm panda paper parade parrot party path peach peanut pear pebble pen pencil penguin
pepper piano picnic picture pig pillow pilot pine pink pirate pizza planet plate plum pocket poem
pond pony potato prince puddle pumpkin puppy purple puzzle queen quiet quilt rabbit radio rain
rainbow raven red ribbon rice ring river road robin robot rocket roof room root rope rose round
ruler saddle sail salad salt sand school scissors sea seal secret seed shadow shark sheep shelf
shell ship shirt shoe shop shovel silver sister skate sky sleep snail snake snow soap sock sofa
soup south spider spoon spring square star station stone storm story strawberry street sugar
summer sun sunset swan table tail tea teacher temple tent thread throne thunder ticket tiger toast
tomato tooth tower town toy train tree triangle truck trumpet tulip tunnel turkey turtle umbrella
uncle valley van vase velvet village violet violin voice wagon wall walnut water wave week whale
wheat wheel whistle white window winter wolf wonder wood wool world yard year yellow zebra zero
""".split()
COMMON = [word for word in COMMON if len(word) <= 9]

_ONSETS = ("b c d f g h j k l m n p r s t v w y z bl br ch cl cr dr fl fr gl gr kn pl pr qu sc sh "
           "sk sl sm sn sp st str sw th tr tw wh").split() + [""]
_VOWELS = "a e i o u a e i o u ai ea ee ie oa oo ou ay ey".split()
_CODAS = ("b ck d f g l ll m n nd ng nk nt p r rd rk rm rn rt s sh sk ss st t th x ft lt mp "
          "lk ct ve ze le er ion ing ed").split() + [""] * 12
_LETTERS = "eeeeettttaaaaooooiiiinnnnssshhhrrrdddlllccuummwwffggyyppbbvkjxqz"


def pseudo_word(rng: random.Random, longest: int = 9) -> str:
    """A word nobody knows: mostly syllables, now and then plain letters."""
    while True:
        if rng.random() < 0.2:
            return "".join(rng.choices(_LETTERS, k=rng.randint(3, min(8, longest))))
        word = ""
        for _ in range(rng.choice((1, 1, 2, 2, 2, 3))):
            word += rng.choice(_ONSETS) + rng.choice(_VOWELS) + rng.choice(_CODAS)
        if 3 <= len(word) <= longest:
            return word


FIRST_NAMES = """
Ada Alan Amir Anna Anton Aria Ben Bella Carlos Clara Daniel Diana Elena Eli Emma Erik Eva Felix
Fiona Grace Hana Hugo Ida Iris Ivan Jack Jana Jonas Julia Kai Karin Kenji Lara Leo Lena Lina Lucas
Lucy Maria Marco Mark Maya Mia Mila Mina Nina Noah Nora Oliver Omar Oscar Pablo Paul Petra Priya
Ravi Rosa Ruth Sam Sara Simon Sofia Stella Theo Tom Uma Vera Victor Wendy Yuki Zoe John Mary Peter
Alice Bob David Kate Linda Max Tim Jane James Anita Bruno Chloe Dora Emil Frank Gina Helen Igor
""".split()


def _lexicon() -> list[str]:
    """Every word of the lists, tables and phrasings that has three to twelve letters.

    It is read from these files, so that whatever word becomes a token is a word to spell as well.
    """
    text = " ".join(path.read_text("utf-8") for path in sorted(Path(__file__).parent.glob("*.py")))
    words = set(re.findall("[a-z]+", text.lower()))
    return sorted(word for word in words if 3 <= len(word) <= 12)


LEXICON = _lexicon()


def _compound(rng: random.Random, longest: int) -> str:
    """A known word with something before or after it: the letters of its tokens are learned."""
    while True:
        known, extra = rng.choice(LEXICON), rng.choice(_CODAS + _ONSETS + _VOWELS + LEXICON)
        word = known + extra if rng.random() < 0.75 else extra + known
        if len(word) <= longest and word != known:
            return word


def _part(rng: random.Random, longest: int) -> str:
    """A piece of a known word: tokens that only stand inside of words are spelled as well."""
    word = rng.choice(LEXICON)
    at = rng.randint(0, len(word) - 3)
    return word[at : at + rng.randint(3, longest)]


def any_word(rng: random.Random, longest: int = 9) -> str:
    chance = rng.random()
    if chance < 0.3:
        while len(word := rng.choice(LEXICON)) > longest:
            pass
        return word
    if chance < 0.36:
        return _part(rng, longest)
    return _compound(rng, longest) if chance < 0.58 else pseudo_word(rng, longest)


def first_name(rng: random.Random) -> str:
    return rng.choice(FIRST_NAMES) if rng.random() < 0.5 else pseudo_word(rng, 7).capitalize()


def full_name(rng: random.Random) -> str:
    name = first_name(rng)
    return f"{name} {pseudo_word(rng, 8).capitalize()}" if rng.random() < 0.5 else name


def place(rng: random.Random) -> str:
    endings = ("", "", "", "ton", "ville", "berg", "ford", "stad", "moor", "field")
    return (pseudo_word(rng, 6) + rng.choice(endings)).capitalize()
