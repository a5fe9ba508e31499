"""The facts of the tables: `key: value`, one table a name."""


def _pairs(text: str) -> list[tuple[str, str]]:
    rows = (line.strip() for line in text.replace("\n", ";").split(";"))
    return [(key.strip(), value.strip()) for key, value in (row.split(":") for row in rows if row)]


CAPITALS = _pairs("""
France: Paris; Germany: Berlin; Italy: Rome; Spain: Madrid; Portugal: Lisbon; Austria: Vienna
Switzerland: Bern; Belgium: Brussels; Netherlands: Amsterdam; Denmark: Copenhagen; Norway: Oslo
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
Qatar: Doha; Oman: Muscat; Afghanistan: Kabul; Bangladesh: Dhaka; Philippines: Manila
Georgia: Tbilisi; Armenia: Yerevan; Azerbaijan: Baku; Uzbekistan: Tashkent; Canada: Ottawa
Mexico: Mexico City; Cuba: Havana; Jamaica: Kingston; Panama: Panama City; Guatemala: Guatemala City
Brazil: Brasilia; Argentina: Buenos Aires; Chile: Santiago; Peru: Lima; Colombia: Bogota
Venezuela: Caracas; Ecuador: Quito; Uruguay: Montevideo; Paraguay: Asuncion; Australia: Canberra
New Zealand: Wellington; Fiji: Suva; Samoa: Apia
""")

_CONTINENTS = {
    "Europe": "France Germany Italy Spain Portugal Austria Switzerland Belgium Netherlands Denmark "
    "Norway Sweden Finland Iceland Ireland Poland Hungary Romania Bulgaria Greece Ukraine Estonia "
    "Latvia Lithuania Croatia Serbia Slovenia Slovakia Albania Malta",
    "Africa": "Egypt Morocco Algeria Tunisia Libya Kenya Ethiopia Ghana Nigeria Senegal "
    "Mali Uganda "
    "Rwanda Zambia Zimbabwe Angola Namibia Madagascar Somalia Sudan",
    "Asia": "Japan China India Pakistan Nepal Thailand Vietnam Laos Indonesia Malaysia "
    "Mongolia Iran "
    "Iraq Jordan Lebanon Syria Qatar Oman Afghanistan Bangladesh Philippines Uzbekistan",
    "North America": "Canada Mexico Cuba Jamaica Panama Guatemala",
    "South America": "Brazil Argentina Chile Peru Colombia Venezuela Ecuador Uruguay Paraguay",
    "Oceania": "Australia Fiji Samoa",
}
CONTINENTS = [(c, name) for name, countries in _CONTINENTS.items() for c in countries.split()]
CONTINENTS.append(("New Zealand", "Oceania"))

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
""")
PLURALS = _pairs("""
mouse: mice; child: children; foot: feet; tooth: teeth; goose: geese; man: men; woman: women
person: people; ox: oxen; leaf: leaves; knife: knives; wolf: wolves; life: lives; half: halves
shelf: shelves; thief: thieves; loaf: loaves; city: cities; baby: babies; berry: berries
country: countries; lady: ladies; story: stories; party: parties; fox: foxes; box: boxes
bus: buses; glass: glasses; dish: dishes; watch: watches; church: churches; brush: brushes
potato: potatoes; tomato: tomatoes; hero: heroes; sheep: sheep; fish: fish; deer: deer; cat: cats
dog: dogs; house: houses; tree: trees; book: books; car: cars; key: keys; toy: toys; day: days
boy: boys; monkey: monkeys; piano: pianos; photo: photos; cactus: cacti; crisis: crises
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
""")
COLOURS = _pairs("""
grass: green; snow: white; blood: red; coal: black; a lemon: yellow; a carrot: orange
a banana: yellow
a tomato: red; a strawberry: red; the clear sky: blue; milk: white; chocolate: brown; a crow: black
a flamingo: pink; a ruby: red; an emerald: green; a sapphire: blue; a sunflower: yellow
a frog: green; a fire engine: red; charcoal: black; an aubergine: purple; a cucumber: green
""")
MIXES = _pairs("""
red and yellow: orange; red and blue: purple; blue and yellow: green; red and white: pink
black and white: grey; yellow and red: orange; blue and red: purple; yellow and blue: green
white and red: pink; white and black: grey
""")
YOUNG = _pairs("""
dog: puppy; cat: kitten; cow: calf; horse: foal; sheep: lamb; goat: kid; pig: piglet; duck: duckling
hen: chick; lion: cub; bear: cub; deer: fawn; swan: cygnet; goose: gosling; frog: tadpole
kangaroo: joey; owl: owlet; seal: pup; elephant: calf; rabbit: kit
""")
SOUNDS = _pairs("""
dog: woof; cat: meow; cow: moo; sheep: baa; duck: quack; pig: oink; horse: neigh; lion: roar
bee: buzz; snake: hiss; frog: ribbit; owl: hoot; mouse: squeak; wolf: howl
rooster: cock-a-doodle-doo
""")
LEGS = _pairs("""
dog: 4; cat: 4; spider: 8; ant: 6; bee: 6; bird: 2; snake: 0; horse: 4; fish: 0; human: 2; cow: 4
octopus: 8; butterfly: 6; chicken: 2; frog: 4; worm: 0; beetle: 6; crab: 10; sheep: 4; duck: 2
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
NUMBER_WORDS = _pairs("""
zero: 0; one: 1; two: 2; three: 3; four: 4; five: 5; six: 6; seven: 7; eight: 8; nine: 9; ten: 10
eleven: 11; twelve: 12; thirteen: 13; fourteen: 14; fifteen: 15; sixteen: 16; seventeen: 17
eighteen: 18; nineteen: 19; twenty: 20; thirty: 30; forty: 40; fifty: 50; sixty: 60; seventy: 70
eighty: 80; ninety: 90
""")
ROMAN = _pairs("""
1: I; 2: II; 3: III; 4: IV; 5: V; 6: VI; 7: VII; 8: VIII; 9: IX; 10: X; 11: XI; 12: XII; 15: XV
20: XX; 50: L; 100: C; 500: D; 1000: M
""")
LANGUAGES = _pairs("""
France: French; Germany: German; Italy: Italian; Spain: Spanish; Portugal: Portuguese
Netherlands: Dutch; Denmark: Danish; Norway: Norwegian; Sweden: Swedish; Finland: Finnish
Iceland: Icelandic; Poland: Polish; Hungary: Hungarian; Romania: Romanian; Bulgaria: Bulgarian
Greece: Greek; Turkey: Turkish; Russia: Russian; Japan: Japanese; China: Chinese; Brazil: Portuguese
Mexico: Spanish; Egypt: Arabic; Thailand: Thai; Vietnam: Vietnamese; Austria: German; Cuba: Spanish
""")
