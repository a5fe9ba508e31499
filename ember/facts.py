"""The facts of the tables: `key: value`, one table a name."""


def _pairs(text: str) -> list[tuple[str, str]]:
    rows = (line.strip() for line in text.replace("\n", ";").split(";"))
    return [(key.strip(), value.strip()) for key, value in (row.split(":") for row in rows if row)]


CAPITALS = _pairs("""
France: Paris; Germany: Berlin; Italy: Rome; Spain: Madrid; Portugal: Lisbon; Austria: Vienna
Switzerland: Bern; Belgium: Brussels; the Netherlands: Amsterdam; Denmark: Copenhagen; Norway: Oslo
Sweden: Stockholm; Finland: Helsinki; Iceland: Reykjavik; Ireland: Dublin; Poland: Warsaw
Hungary: Budapest; Romania: Bucharest; Bulgaria: Sofia; Greece: Athens; Turkey: Ankara
Ukraine: Kyiv; Russia: Moscow; Estonia: Tallinn; Latvia: Riga; Lithuania: Vilnius
Croatia: Zagreb; Serbia: Belgrade; Slovenia: Ljubljana; Slovakia: Bratislava; Albania: Tirana
Malta: Valletta; Cyprus: Nicosia; Egypt: Cairo; Morocco: Rabat; Algeria: Algiers; Tunisia: Tunis
Libya: Tripoli; Kenya: Nairobi; Ethiopia: Addis Ababa; Ghana: Accra; Nigeria: Abuja
Senegal: Dakar; Mali: Bamako; Uganda: Kampala; Rwanda: Kigali; Zambia: Lusaka; Zimbabwe: Harare
Angola: Luanda; Namibia: Windhoek; Madagascar: Antananarivo; Somalia: Mogadishu; Sudan: Khartoum
Japan: Tokyo; China: Beijing; India: New Delhi; Pakistan: Islamabad; Nepal: Kathmandu
Thailand: Bangkok; Vietnam: Hanoi; Laos: Vientiane; Indonesia: Jakarta; Malaysia: Kuala Lumpur
Mongolia: Ulaanbaatar; Iran: Tehran; Iraq: Baghdad; Jordan: Amman; Lebanon: Beirut; Syria: Damascus
Qatar: Doha; Oman: Muscat; Afghanistan: Kabul; Bangladesh: Dhaka; the Philippines: Manila
Georgia: Tbilisi; Armenia: Yerevan; Azerbaijan: Baku; Uzbekistan: Tashkent; Canada: Ottawa
Mexico: Mexico City; Cuba: Havana; Jamaica: Kingston; Panama: Panama City; Guatemala: Guatemala City
Brazil: Brasilia; Argentina: Buenos Aires; Chile: Santiago; Peru: Lima; Colombia: Bogota
Venezuela: Caracas; Ecuador: Quito; Uruguay: Montevideo; Paraguay: Asuncion; Australia: Canberra
New Zealand: Wellington; Fiji: Suva; Samoa: Apia
the USA: Washington; the United Kingdom: London; Czechia: Prague; Luxembourg: Luxembourg
Scotland: Edinburgh; Wales: Cardiff; Moldova: Chisinau; Belarus: Minsk; Monaco: Monaco
South Korea: Seoul; North Korea: Pyongyang; Singapore: Singapore; Saudi Arabia: Riyadh
Kuwait: Kuwait City; Yemen: Sanaa; Cambodia: Phnom Penh; Kazakhstan: Astana; Taiwan: Taipei
Cameroon: Yaounde; Tanzania: Dodoma; Botswana: Gaborone; Mozambique: Maputo; Malawi: Lilongwe
Liberia: Monrovia; Gabon: Libreville; Niger: Niamey; Chad: N'Djamena; Togo: Lome
Costa Rica: San Jose; Honduras: Tegucigalpa; Nicaragua: Managua; El Salvador: San Salvador
the Dominican Republic: Santo Domingo; the Bahamas: Nassau; Haiti: Port-au-Prince
""")

_CONTINENTS = {
    "Europe": "France Germany Italy Spain Portugal Austria Switzerland Belgium Denmark "
    "Norway Sweden Finland Iceland Ireland Poland Hungary Romania Bulgaria Greece Ukraine Estonia "
    "Latvia Lithuania Croatia Serbia Slovenia Slovakia Albania Malta Czechia "
    "Luxembourg Scotland Wales Moldova Belarus Monaco",
    "Africa": "Egypt Morocco Algeria Tunisia Libya Kenya Ethiopia Ghana Nigeria Senegal "
    "Mali Uganda "
    "Rwanda Zambia Zimbabwe Angola Namibia Madagascar Somalia Sudan "
    "Cameroon Tanzania Botswana Mozambique Malawi Liberia Gabon Niger Chad Togo",
    "Asia": "Japan China India Pakistan Nepal Thailand Vietnam Laos Indonesia Malaysia "
    "Mongolia Iran "
    "Iraq Jordan Lebanon Syria Qatar Oman Afghanistan Bangladesh Uzbekistan "
    "Kuwait Yemen Cambodia Taiwan Singapore",
    "North America": "Canada Mexico Cuba Jamaica Panama Guatemala Honduras Nicaragua "
    "Haiti",
    "South America": "Brazil Argentina Chile Peru Colombia Venezuela Ecuador Uruguay Paraguay",
    "Oceania": "Australia Fiji Samoa",
}
CONTINENTS = [(c, name) for name, countries in _CONTINENTS.items() for c in countries.split()]
CONTINENTS += _pairs("""
New Zealand: Oceania; the Netherlands: Europe; the United Kingdom: Europe; the Philippines: Asia
the USA: North America; South Korea: Asia; North Korea: Asia; Saudi Arabia: Asia
Costa Rica: North America; El Salvador: North America; the Bahamas: North America
the Dominican Republic: North America
""")

ELEMENTS = [tuple(row.split()) for row in """
hydrogen H;helium He;lithium Li;beryllium Be;boron B;carbon C;nitrogen N;oxygen O;fluorine F
neon Ne;sodium Na;magnesium Mg;aluminium Al;silicon Si;phosphorus P;sulfur S;chlorine Cl;argon Ar
potassium K;calcium Ca;scandium Sc;titanium Ti;vanadium V;chromium Cr;manganese Mn;iron Fe
cobalt Co;nickel Ni;copper Cu;zinc Zn;gallium Ga;germanium Ge;arsenic As;selenium Se;bromine Br
krypton Kr
""".strip().replace("\n", ";").split(";")]
ELEMENT_NUMBERS = [(name, str(at + 1)) for at, (name, _) in enumerate(ELEMENTS)]
HEAVY = [("silver", "Ag"), ("gold", "Au"), ("tin", "Sn"), ("lead", "Pb"), ("iodine", "I"),
         ("mercury", "Hg"), ("platinum", "Pt"), ("uranium", "U"), ("tungsten", "W")]

OPPOSITES = _pairs("""
hot: cold; big: small; tall: short; fast: slow; light: dark; old: young; new: old; good: bad
happy: sad; rich: poor; full: empty; open: closed; wet: dry; hard: soft; heavy: light; loud: quiet
early: late; near: far; high: low; deep: shallow; wide: narrow; thick: thin; strong: weak
clean: dirty; easy: difficult; left: right; up: down; in: out; over: under; before: after
first: last; always: never; day: night; black: white; true: false; yes: no; start: end; buy: sell
give: take; push: pull; win: lose; love: hate; begin: finish; arrive: leave; remember: forget
laugh: cry; sweet: sour; sharp: blunt; smooth: rough; cheap: expensive; safe: dangerous
brave: cowardly; inside: outside; above: below; north: south; east: west; top: bottom; front: back
long: short; many: few; more: less; add: subtract; rise: fall; wake: sleep; friend: enemy
question: answer; summer: winter; sunrise: sunset; ancient: modern; polite: rude; alive: dead
beautiful: ugly; clever: stupid; kind: cruel; lazy: hard-working; generous: stingy; calm: nervous
married: single; guilty: innocent; public: private; horizontal: vertical; maximum: minimum
success: failure; war: peace; victory: defeat; hero: villain; teacher: student; parent: child
husband: wife; king: queen; boy: girl; brother: sister; uncle: aunt; father: mother; male: female
yesterday: tomorrow; morning: evening; heaven: hell; import: export; increase: decrease
accept: refuse; attack: defend; build: destroy; create: destroy; borrow: lend; catch: throw
fix: break; float: sink; freeze: melt; pass: fail; praise: blame; raise: lower; save: spend
send: receive; speak: listen; stand: sit; tighten: loosen; unite: divide; whisper: shout
backward: forward; everything: nothing; everybody: nobody; with: without; on: off; here: there
same: different; simple: complicated; straight: crooked; tame: wild; visible: invisible
possible: impossible; legal: illegal; fair: unfair; certain: uncertain; correct: wrong
ripe: unripe; fresh: stale; raw: cooked; frequent: rare; huge: tiny; permanent: temporary
positive: negative; solid: liquid; tight: loose; vague: clear; wise: foolish; optimist: pessimist
""")
_known = {word for word, _ in OPPOSITES}
OPPOSITES += [(b, a) for a, b in OPPOSITES if b not in _known]  # both ways where it is clear
OPPOSITES = list(dict(reversed(OPPOSITES)).items())
PLURALS = _pairs("""
mouse: mice; child: children; foot: feet; tooth: teeth; goose: geese; man: men; woman: women
person: people; ox: oxen; leaf: leaves; knife: knives; wolf: wolves; life: lives; half: halves
shelf: shelves; thief: thieves; loaf: loaves; city: cities; baby: babies; berry: berries
country: countries; lady: ladies; story: stories; party: parties; fox: foxes; box: boxes
bus: buses; glass: glasses; dish: dishes; watch: watches; church: churches; brush: brushes
potato: potatoes; tomato: tomatoes; hero: heroes; sheep: sheep; fish: fish; deer: deer; cat: cats
dog: dogs; house: houses; tree: trees; book: books; car: cars; key: keys; toy: toys; day: days
boy: boys; monkey: monkeys; piano: pianos; photo: photos; cactus: cacti; crisis: crises
girl: girls; table: tables; chair: chairs; apple: apples; horse: horses; bird: birds; cow: cows
flower: flowers; friend: friends; hand: hands; eye: eyes; window: windows; door: doors; pen: pens
fly: flies; butterfly: butterflies; family: families; puppy: puppies; cherry: cherries
wife: wives; calf: calves; scarf: scarves; wish: wishes; peach: peaches; bench: benches
class: classes; kiss: kisses; bush: bushes; sandwich: sandwiches; echo: echoes; fireman: firemen
snowman: snowmen; louse: lice; moose: moose; series: series; species: species; radio: radios
school: schools; teacher: teachers; spoon: spoons; fork: forks; shoe: shoes; shirt: shirts
""")
PAST = _pairs("""
go: went; see: saw; eat: ate; drink: drank; run: ran; swim: swam; write: wrote; read: read
speak: spoke; take: took; give: gave; come: came; make: made; buy: bought; bring: brought
think: thought; catch: caught; teach: taught; sing: sang; begin: began; break: broke; drive: drove
fly: flew; know: knew; grow: grew; fall: fell; find: found; sit: sat; stand: stood; win: won
lose: lost; sleep: slept; feel: felt; keep: kept; leave: left; meet: met; pay: paid; say: said
sell: sold; send: sent; tell: told; wear: wore; build: built; choose: chose; draw: drew
forget: forgot
hide: hid; ride: rode; walk: walked; play: played; jump: jumped; look: looked; cook: cooked
am: was; are: were; is: was; have: had; do: did; get: got; hear: heard; hold: held; throw: threw
blow: blew; rise: rose; shake: shook; steal: stole; wake: woke; freeze: froze; bite: bit; cut: cut
put: put; hit: hit; shut: shut; let: let; cost: cost; lend: lent; spend: spent; feed: fed; lead: led
dig: dug; stick: stuck; hang: hung; fight: fought; seek: sought; shine: shone; shoot: shot
tear: tore; dance: danced; smile: smiled; laugh: laughed; talk: talked; work: worked; ask: asked
open: opened; close: closed; help: helped; love: loved; live: lived; stop: stopped; try: tried
study: studied; cry: cried; wash: washed; watch: watched; call: called; paint: painted; ring: rang
sink: sank; shrink: shrank; spring: sprang; bend: bent; burn: burned; learn: learned; hope: hoped
""")
COLOURS = _pairs("""
grass: green; snow: white; blood: red; coal: black; a lemon: yellow; a carrot: orange
a banana: yellow
a tomato: red; a strawberry: red; the clear sky: blue; milk: white; chocolate: brown; a crow: black
a flamingo: pink; a ruby: red; an emerald: green; a sapphire: blue; a sunflower: yellow
a frog: green; a fire engine: red; charcoal: black; an aubergine: purple; a cucumber: green
""")
COLOURS += _pairs("""
the sky: blue; the sun: yellow; the sea: blue; the ocean: blue; an orange: orange; a cherry: red
chalk: white; salt: white; sugar: white; cotton: white; a polar bear: white; a swan: white
a leaf: green; a lime: green; a pea: green; spinach: green; broccoli: green; lettuce: green
a blueberry: blue; an elephant: grey; a mouse: grey; wood: brown; coffee: brown; a plum: purple
a raven: black; soot: black; mustard: yellow; corn: yellow; a pumpkin: orange; a canary: yellow
an egg yolk: yellow; a stop sign: red; a raspberry: red; ketchup: red; a cloud: white
paper: white; a crocodile: green; a brown bear: brown; a pig: pink; the night sky: black
""")
MIXES = _pairs("""
red and yellow: orange; red and blue: purple; blue and yellow: green; red and white: pink
black and white: grey; yellow and red: orange; blue and red: purple; yellow and blue: green
white and red: pink; white and black: grey
""")
YOUNG = _pairs("""
dog: puppy; cat: kitten; cow: calf; horse: foal; sheep: lamb; goat: kid; pig: piglet; duck: duckling
hen: chick; lion: cub; bear: cub; deer: fawn; swan: cygnet; goose: gosling; frog: tadpole
kangaroo: joey; owl: owlet; seal: pup; elephant: calf; rabbit: kit; wolf: pup; tiger: cub
eagle: eaglet; donkey: foal; zebra: foal; whale: calf; chicken: chick; giraffe: calf; camel: calf
panda: cub; dolphin: calf; penguin: chick; bird: chick; spider: spiderling; bat: pup; llama: cria
koala: joey; hare: leveret; butterfly: caterpillar; leopard: cub; moose: calf; toad: tadpole
""")
SOUNDS = _pairs("""
dog: woof; cat: meow; cow: moo; sheep: baa; duck: quack; pig: oink; horse: neigh; lion: roar
bee: buzz; snake: hiss; frog: ribbit; owl: hoot; mouse: squeak; wolf: howl
rooster: cock-a-doodle-doo; turkey: gobble; donkey: hee-haw; chicken: cluck; hen: cluck; crow: caw
dove: coo; pigeon: coo; goose: honk; bird: tweet; chick: cheep; bear: growl; tiger: roar
raven: caw; kitten: meow; puppy: woof; lamb: baa; calf: moo; toad: ribbit; fly: buzz; cuckoo: cuckoo
""")
LEGS = _pairs("""
dog: 4; cat: 4; spider: 8; ant: 6; bee: 6; bird: 2; snake: 0; horse: 4; fish: 0; human: 2; cow: 4
octopus: 8; butterfly: 6; chicken: 2; frog: 4; worm: 0; beetle: 6; crab: 10; sheep: 4; duck: 2
lion: 4; tiger: 4; elephant: 4; pig: 4; goat: 4; mouse: 4; wolf: 4; fox: 4; bear: 4; rabbit: 4
owl: 2; penguin: 2; ostrich: 2; eagle: 2; parrot: 2; goose: 2; swan: 2; hen: 2; fly: 6; mosquito: 6
wasp: 6; moth: 6; lobster: 10; shrimp: 10; scorpion: 8; tick: 8; snail: 0; whale: 0; dolphin: 0
shark: 0; turtle: 4; lizard: 4; crocodile: 4; giraffe: 4; camel: 4; zebra: 4; donkey: 4; deer: 4
hamster: 4; squirrel: 4; cricket: 6; grasshopper: 6; person: 2; child: 2
""")
SIDES = _pairs("""
triangle: 3; square: 4; rectangle: 4; pentagon: 5; hexagon: 6; heptagon: 7; octagon: 8; nonagon: 9
decagon: 10
""")
PLANETS = [(name, str(at + 1)) for at, name in enumerate(
    "Mercury Venus Earth Mars Jupiter Saturn Uranus Neptune".split())]
_MONTHS = ("January February March April May June July August September October November "
           "December").split()
MONTH_LENGTHS = [(m, d) for m, d in zip(
    _MONTHS, "31 28 31 30 31 30 31 31 30 31 30 31".split(), strict=True)]
MONTH_NUMBERS = [(m, str(at + 1)) for at, m in enumerate(_MONTHS)]
NEXT_LETTERS = [(a, b) for a, b in zip(
    "abcdefghijklmnopqrstuvwxy", "bcdefghijklmnopqrstuvwxyz", strict=True)]
PREVIOUS_LETTERS = [(b, a) for a, b in NEXT_LETTERS]
_SMALL = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
          "fifteen sixteen seventeen eighteen nineteen").split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()


def _in_words(number: int) -> str:
    if number < 20:
        return _SMALL[number]
    tens, ones = divmod(number, 10)
    return _TENS[tens - 2] + (f"-{_SMALL[ones]}" if ones else "")


NUMBER_WORDS = [(_in_words(number), str(number)) for number in range(100)]
NUMBER_WORDS += [("one hundred", "100"), ("one thousand", "1000")]
NUMBER_WORDS += [(f"{_SMALL[at]} hundred", f"{at}00") for at in range(2, 10)]
_ROMAN = [(100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"),
          (1, "I")]


def _roman(number: int) -> str:
    text = ""
    for value, letters in _ROMAN:
        while number >= value:
            text, number = text + letters, number - value
    return text


ROMAN = [(str(number), _roman(number)) for number in [*range(1, 51), 60, 70, 80, 90, 100]]
ROMAN += [("500", "D"), ("1000", "M")]
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
NEXT_DAYS = [(day, _DAYS[(at + 1) % 7]) for at, day in enumerate(_DAYS)]
PREVIOUS_DAYS = [(b, a) for a, b in NEXT_DAYS]
NEXT_MONTHS = [(month, _MONTHS[(at + 1) % 12]) for at, month in enumerate(_MONTHS)]
PREVIOUS_MONTHS = [(b, a) for a, b in NEXT_MONTHS]
LANGUAGES = _pairs("""
France: French; Germany: German; Italy: Italian; Spain: Spanish; Portugal: Portuguese
the Netherlands: Dutch; Denmark: Danish; Norway: Norwegian; Sweden: Swedish; Finland: Finnish
Iceland: Icelandic; Poland: Polish; Hungary: Hungarian; Romania: Romanian; Bulgaria: Bulgarian
Greece: Greek; Turkey: Turkish; Russia: Russian; Japan: Japanese; China: Chinese; Brazil: Portuguese
Mexico: Spanish; Egypt: Arabic; Thailand: Thai; Vietnam: Vietnamese; Austria: German; Cuba: Spanish
the USA: English
the United Kingdom: English; Australia: English; New Zealand: English; Jamaica: English
Argentina: Spanish; Chile: Spanish; Peru: Spanish; Colombia: Spanish; Uruguay: Spanish
Venezuela: Spanish; South Korea: Korean; Iran: Persian; Ukraine: Ukrainian; Croatia: Croatian
Serbia: Serbian; Czechia: Czech; Slovakia: Slovak; Slovenia: Slovene; Lithuania: Lithuanian
Latvia: Latvian; Estonia: Estonian; Albania: Albanian; Mongolia: Mongolian; Indonesia: Indonesian
Saudi Arabia: Arabic; Morocco: Arabic; Iraq: Arabic; Syria: Arabic; Tunisia: Arabic; Libya: Arabic
Bangladesh: Bengali; Cambodia: Khmer; Laos: Lao; Nepal: Nepali; Armenia: Armenian
Georgia: Georgian; Ecuador: Spanish; Honduras: Spanish; Angola: Portuguese; Jordan: Arabic
""")
