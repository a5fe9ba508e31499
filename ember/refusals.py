"""Questions outside what Ember learned, and a plain “Sorry, …” instead of an invention."""

from collections.abc import Sequence

from . import arithmetic, facts, tables
from .arithmetic import number
from .dialogue import Dialogue, Draw, question_and_answer
from .noise import ask
from .wordings import expanded
from .words import COMMON, any_word, full_name, place, pseudo_word

FAMILY = "refusals"
UNKNOWN = "Sorry, I don't know that. I am a small model."
NO_NEWS = "Sorry, I can't see what happens in the world."
TOO_HARD = "Sorry, that is too hard for me."
NO_WRITING = "Sorry, I can't write longer texts."
NO_TRANSLATION = "Sorry, I can't translate."
NO_ADVICE = "Sorry, I can't give advice on that."
ENGLISH_ONLY = "Sorry, I only speak English."
_LANGUAGES = ("French German Spanish Italian Latin Dutch Chinese Japanese Russian Greek Arabic "
              "Polish "
              "Turkish Hindi Swedish Korean Portuguese Finnish Danish Hungarian").split()
_VERBS = ("fly sing grow burn move shine melt sleep break sink work eat fall fight swim die travel "
          "jump bark float explode glow freeze hurt smell").split()
_KINDS = ("blue strong old famous rare big heavy fast beautiful expensive warm dangerous round "
          "cold "
          "sad green red tall deep popular important hot healthy difficult").split()
_TOPICS = ("love war history physics politics cooking music football art philosophy economics "
           "biology gravity time dinosaurs religion computers friendship climate chess autumn "
           "evolution photosynthesis democracy blockchain atoms tea school relativity electricity "
           "inflation capitalism volcanoes vaccines poetry magnetism algebra geometry "
           "stress").split()
_TOPICS += ("a dog|a cat|the moon|the sea|a robot|my mother|the summer|a lonely king|two friends|"
            "the rain|black holes|machine learning|the brain|the stars|a horse|my cat|the snow|"
            "an old house|neural networks|the internet|the heart|global warming|string theory|"
            "quantum physics|artificial intelligence|my holidays|a brave knight|"
            "the ocean").split("|")
_FAMOUS = ("Mozart|Beethoven|Napoleon|Shakespeare|Leonardo da Vinci|Picasso|Isaac Newton|Darwin|"
           "Cleopatra|Julius Caesar|Marie Curie|Galileo|Plato|Aristotle|Gandhi|Nelson Mandela|"
           "Barack Obama|Michael Jackson|Madonna|Elvis|Taylor Swift|Messi|Ronaldo|Steve Jobs|"
           "Bill Gates|Elon Musk|Harry Potter|Batman|Superman|James Bond|Sherlock Holmes|"
           "Queen Victoria|Abraham Lincoln|George Washington|Columbus|Nikola Tesla|Alan Turing|"
           "Ada Lovelace|Bach|Goethe|Kafka|Tolstoy|Hemingway|Mickey Mouse|Santa Claus|Jesus|"
           "Buddha|Socrates|Van Gogh|Rembrandt|Freud|Marx|Churchill|Muhammad Ali|Usain Bolt|"
           "Roger Federer|the Beatles|Queen|ABBA|the Rolling Stones|Beyonce|Rihanna|"
           "Eminem").split("|")
_WORKS = ("Hamlet|Faust|Titanic|Avatar|Star Wars|the Lion King|Macbeth|the Bible|the Odyssey|"
          "Don Quixote|Moby Dick|Dracula|Frankenstein|the Mona Lisa|Imagine|Bohemian Rhapsody|"
          "Hey Jude|Yesterday|Casablanca|Inception|Toy Story|Frozen|The Godfather|Jurassic Park|"
          "War and Peace|The Little Prince|Pinocchio|Robin Hood|The Hobbit|Game of Thrones|"
          "Swan Lake|the Magic Flute|Guernica|Breaking Bad|Friends|The Simpsons").split("|")
_SIGHTS = ("the Great Wall|Mount Everest|Big Ben|the Colosseum|the pyramids|the Statue of Liberty|"
           "the Amazon|the Nile|the Sahara|the Alps|the Pacific|the Danube|the White House|"
           "the Louvre|the Taj Mahal|the Titanic|the Grand Canyon|Niagara Falls|"
           "the Golden Gate Bridge|"
           "the Sun|the Earth|Mars|Jupiter|a blue whale|the universe|Mont Blanc|the Rhine|"
           "Lake Victoria"
           ).split("|")
_PRODUCTS = ("a laptop|a new car|a Tesla|a house|a Playstation|a coffee|a phone|a ticket|a bike|"
             "a pair of shoes|a watch|a dog|a kilo of gold|a flight|a stamp|a pizza|a hotel room|"
             "a litre of petrol|a television|an Xbox").split("|")
_TOOLS = ("windows|docker|python|git|excel|word|photoshop|android|my printer|the wifi|a server|"
          "my keyboard|ubuntu|chrome|a database|numpy|node|my phone|my router|firefox").split("|")
_CODE = ("Python|Java|C|C++|JavaScript|Rust|Go|HTML|CSS|SQL|bash|PHP|Ruby|Swift|Haskell").split("|")

_WORLD = [
    "Why is the {w} {j}?", "Why do {w}s {v}?", "How do {w}s {v}?", "When did the {w} {v}?",
    "Who {v}s the {w}?", "What makes a {w} {j}?", "How can a {w} {v}?", "Where do {w}s {v}?",
    "Which {w} is the most {j}?", "Why are {w}s so {j}?", "Do {w}s {v}?", "Can a {w} {v}?",
    "What if a {w} could {v}?", "Is a {w} {j}?", "How {j} is a {w}?", "Who first saw a {j} {w}?",
    "When will the {w} {v}?", "What happens when a {w} {v}s?", "Who owns the {j} {w}?",
    "[What|Which] is the [biggest|largest|smallest|oldest|fastest|tallest] {w} in the world?",
    "What's the [biggest|longest|highest|deepest] [mountain|river|lake|sea|desert|"
    "island] on earth?",
    "Which is the [biggest|fastest|strongest|smallest|most dangerous] [animal|bird|fish|snake]?",
    "What is the [tallest|oldest|largest] [building|tree|country|city|bridge] in the world?",
    "Which country is the [largest|smallest|richest|poorest]?",
    "Which city is the [oldest|biggest]?",
    "Who is the [richest|tallest|oldest|smartest|strongest] [man|woman|person] in the world?",
    "How many [people|countries|languages|stars|oceans|species] are there[ in the world|]?",
    "How [big|old|far|hot|heavy|high|deep|long|tall|wide] is {s}?", "What is {s}?", "Where is {s}?",
    "How many people visit {s}?", "Who built {s}?", "When was {s} built?", "Why is {s} so famous?",
    "How far is it from here to {s}?", "Have you seen {s}?", "What do you know about {s}?",
    "Why is the [grass green|snow cold|sea salty|fire hot|moon white|sun so bright]?",
    "Why do [cats purr|birds sing|leaves fall|we sleep|people lie|stars shine|dogs bark]?",
    "What is [inside|on|under|behind] {s}?", "Where do babies come from?", "What came first?",
    "Does God exist?", "Is there life on [Mars|other planets]?", "What happens after death?",
    "When did [dinosaurs live|the war begin|Rome fall|the wall fall|people land on the moon]?",
    "What happened in {y}?", "What happened in the year {y}?", "Who ruled in {y}?",
    "In which year did [the First World War|the French Revolution|the Middle Ages] [start|end]?",
    "What is the [speed of light|boiling point of water|mass of the earth|distance to the sun]?",
    "What is the formula for [water|speed|energy|the area of a circle]?", "What is E=mc2?",
    "What's the difference between [a crocodile and an alligator|tea and coffee|love and hate]?",
    "How many bones [are in the body|does a human have]?", "What does the heart do?",
    "Which animal [is the fastest|lives longest|sleeps most]?",
    "How long do [dogs|cats|flies] live?",
    "What do [bees|cows|frogs|lions|snakes] eat?", "Where do [lions|bears|penguins] live?",
    "Is a [tomato|banana|strawberry] a [fruit|vegetable|berry]?", "How many calories has a {w}?",
    "Can {w}s {v}?", "Is it true that {w}s {v}?", "What colour are the eyes of a {w}?",
    "What colour are the [ears|feet|wings] of a {w}?", "Which colour are the eyes of a {w}?",
    "What colour is the [hair|nose|tail|roof] of a {w}?", "What colour are the eyes of {n}?",

    "How does [a plane|a fridge|the heart|electricity|a battery|a rocket|the internet] work?",
    "What causes [earthquakes|rain|wind|cancer|war|rainbows]?", "How is [glass|paper|beer] made?",
    "What does a {w} eat?", "Where does the {w} live?", "How long does a {w} live?",
    "What is a synonym for {w}?", "synonym of {w}", "another word for {w}",
    "Which word means the same as {w}?", "a word like {w}", "Give me a synonym for {w}.",
    "What rhymes with {w}?", "Use {w} in a sentence.",
    "What is the most {j} {w} in the world?", "Why does a {w} {v}?",
    "Who made the first {j} {w}?", "How often does a {w} {v}?", "How many {w}s are in the world?",
    "Why can't {w}s {v}?", "What is the reason that {w}s {v}?", "How was {s} made?",
    "What is so special about {s}?", "Which {w} lives the longest?",
]
_PEOPLE = [
    "Have you heard of {n}?", "What does {n} do?", "What did {n} [invent|discover|paint|do]?",
    "Where was {n} born?", "When did {n} die?", "Why is {n} famous?", "How tall is {n}?",
    "Which film did {n} make?", "Who are the parents of {n}?", "Name the wife of {n}.",
    "What is the job of {n}?", "How rich is {n}?", "Who knows {n}?", "Do you like {n}?",
    "Have you met {n}?", "Describe {n}.", "Explain who {n} is.", "What happened to {n}?",
    "Which books did {n} write?", "In which year was {n} born?", "Who is {n}?", "Who was {n}?",
    "When was {n} born?", "Tell me [something |everything |]about {n}.", "How old is {n}?",
    "What did {n} write?", "Is {n} [famous|alive|dead|rich|married]?", "Where does {n} live?",
    "Who [wrote|sang|made|painted|composed|directed|invented] {f}?", "Who plays in {f}?",
    "Who is the author of {f}?", "When did {f} come out?", "What is {f} about?", "Is {f} good?",
    "Did you [see|read|like] {f}?", "How does {f} end?", "Who is the main character of {f}?",
    "Who is the [president|king|queen|prime minister|chancellor|leader] of {p}?",
    "Who was the first [president|man on the moon|woman in space|king of England]?",
    "Who invented the [telephone|light bulb|wheel|computer|car|internet|radio|airplane]?",
    "Who discovered [America|gravity|penicillin|electricity|radium|oxygen]?", "{n}?",
    "Who is the CEO of [Google|Apple|Microsoft|Tesla|Amazon]?", "Who founded [Apple|Google|Rome]?",
    "Which band does {n} play in?", "Which team does {n} play for?", "How did {n} die?",
    "What nationality is {n}?", "Is {n} still alive?", "Give me a biography of {n}.",
    "Can you tell me about {n}?", "What is the real name of {n}?", "When did {n} live?",
    "Who is the best [singer|actor|player|painter|writer] [of all time|in the world]?",
    "Who won the [Nobel prize|Oscar|election|Champions League] in {y}?", "Is {n} a good person?",
    "Who is {n} married to?", "What is {n} known for?", "Do you know {n}?",
    "What did {n} say?", "Who is the mother of {n}?", "How many children has {n}?",
    "Which song is by {n}?", "What year did {n} die?", "Quote {n}.",
    "Who has the role of the hero in {f}?",
    "How many [brothers|sisters|wives|goals|songs] has {n}?",
    "How many [films|books|records|medals] did {n} make?",
    "How many [kids|friends|fans] does {n} have?",
    "Which [car|dog|house] has {n}?", "What is the height of {n}?", "How many years did {n} live?",
    "What was {n} famous for?",
]
_THINGS = [
    "Explain {w}.", "Explain what {w} is.", "Tell me about {w}.", "What do you think about {w}?",
    "Do you like {w}?", "Why do people like {w}?", "Who discovered {w}?", "What's {w}?",
    "When was the {w} invented?", "How is {w} made?", "Where does {w} come from?",
    "What is {w} made of?", "How many kinds of {w} are there?", "Describe {w}.", "{x}", "{x}?",
    "{u}",
    "Describe a {w} to me.", "What is special about {w}?", "Is {w} good for you?", "{w} {u}",
    "Why is {w} so popular?", "How do you use a {w}?", "How fast is a {w}?", "How heavy is a {w}?",
    "Give me facts about {w}.", "What can I do with {w}?", "Can you explain {w}?", "what is {t}",
    "Do you know what {w} is?", "Who wrote the book {w}?", "Who sang {w}?", "explain {t}",
    "Who plays in the film {w}?", "What is [the meaning of |]{t}?", "Tell me about {t}.",
    "How does {t} work?", "Why is there {t}?", "What do you know about {t}?", "Define {t}.",
    "Can you explain {t} [to me|in simple words|to a child]?", "What is the theory of {t}?",
    "Give me an introduction to {t}.", "I want to learn about {t}.", "Teach me {t}.",
    "I have to give a talk about {t}, help me.", "Who invented {t}?", "What is the history of {t}?",
    "How much [is|does] {m}[ cost|]?", "What is the price of {m}?", "Where can I buy {m}?",
    "How expensive is {m}?", "Where do I get {m}?", "Can I get {m} for 100 euros?",
    "What is the best [film|book|song|phone|car|country|restaurant|language]?", "What's {t} about?",
    "How do I [install|update|fix|use|remove|restart|start] {i}?", "Why is {i} so slow?",
    "{i} does not work, what can I do?", "What is {i}?", "How do I connect {i}?",
    "I can't open {i}.",
    "Why does {i} crash?", "Which is better, {i} or {o}?", "What's new in {i}?", "Is {i} free?",
    "How do I [write|make|build|create] [an app|a website|a game|a loop] [in|with] {c}?",
    "What is a [variable|pointer|class|function|loop|list] in {c}?", "Is {c} better than Java?",
    "How do I [sort a list|read a file|reverse a string|open a file] in {c}?", "Do you know {c}?",
    "What does this {c} error mean?", "Fix my {c} code.", "Explain recursion in {c}.",
    "What is a {w}?", "What does {w} mean?", "Define {w}.", "How does a {w} work?",
    "Why is a {w} important?", "Who invented the {w}?", "What is the history of the {w}?",
    "How much does a {w} cost?", "Where can I buy a {w}?", "What is the best {w}?",
    "Explain {w} to me.", "How do I make a {w}?", "What are the parts of a {w}?",
    "How do you build a {w}?", "What should I know about {t}?", "How can I learn {c}?",
    "Where can I download {i}?", "My {w} is broken.", "My {w} does not work.",
    "I have a problem with my {w}.", "The {w} is broken.",
    "My {w} makes a [noise|strange noise|sound].", "The {w} makes a noise.", "Our {w} is too loud.",
    "My {w} won't start.", "Our {w} is broken.", "My {w} is [old|slow|defective].",
    "I've got a problem with my {w}.", "There is a problem with the {w}.",
    "I have trouble with my {w}.", "We have a problem with our {w}.",
    "I lost my {w}, what now?", "How do I repair my {w}?",
    "What's the point of {t}?",
]
_PLACES = [
    "How do I get to {p}?", "Is {p} nice?", "Is {p} a big city?", "What can I see in {p}?",
    "What is {p} famous for?", "What is the history of {p}?", "What is the area of {p}?",
    "Who is the king of {p}?", "Who rules {p}?", "What do people eat in {p}?", "Is it safe in {p}?",
    "What is the currency of {p}?", "Which sea is next to {p}?", "Which money do they use in {p}?",
    "What are the neighbours of {p}?", "What is the largest city of {p}?", "Is {p} expensive?",
    "How old is {p}?", "Who founded {p}?", "Tell me about {p}.", "How expensive is {p}?",
    "What river is in {p}?", "Which rivers are in {p}?", "Name a river in {p}.",
    "What is {p} like?",
    "Which lake is in {p}?", "Is {p} far away?", "What is the flag of {p}?",
    "Do I need a visa for {p}?",
    "How many rivers flow through {p}?", "When was {p} founded?", "What is the best time for {p}?",
    "How many [people|inhabitants] [live in|has|are in] {p}?", "How far is [it to |]{p}?",
    "What's the population of {p}?", "Which airport is in {p}?", "What is there to do in {p}?",
    "Book me a [flight|hotel|train|trip] to {p}.", "Show me a map of {p}.", "Find a hotel in {p}.",
    "How long is the flight to {p}?", "Give me tips for {p}.", "Plan a trip to {p}.",
    "What is the biggest [city|lake|park|museum] in {p}?", "Was there a war in {p}?",
    "Which team is from {p}?", "Which [food|dish|drink] comes from {p}?", "Have you been to {p}?",
    "How big is {p}?", "What time zone is {p} in?", "Who was born in {p}?", "Is {p} rich?",
    "What is the population of {p}?", "How many people live in {p}?", "How far is it to {p}?",
    "Where is the best hotel in {p}?", "Who is the mayor of {p}?", "Why do people go to {p}?",
    "Who is the president of {p}?", "What is the highest mountain of {p}?",
    "Which river flows through {p}?", "What are the people in {p} like?",
    "Which countries border {p}?", "What is the national dish of {p}?",
]
# Of a place that no table knows, in the tables' own wordings: the subject decides, not the form.
_CAPITALS = ["capital", "capital", "country of a capital", "continent", "language"]
_NOW = [
    "What time is it[ now| right now| please|]?", "What's the time[ now|]?", "Which day is today?",
    "What is the time in {p}?", "What is the weather [today|tomorrow|this weekend|now]?",
    "Will it [snow|rain|be warm|be cold|be sunny] [tomorrow|today|tonight|next week]?",
    "Is it [warm|cold|raining|snowing|dark|sunny] [outside|in {p}|now]?", "weather tomorrow",
    "What is the temperature [outside|today|in {p}]?", "What is new today?", "Any news?",
    "What happened [yesterday|today|last week|last night]?", "What's going on today?",
    "Who [is winning|won the match|won the world cup|won the election|plays today]?",
    "Is the [shop|bank|library|pharmacy] open[ now| today|]?", "When does the train to {p} leave?",
    "Are there any news from {p}?", "What's new in {p}?", "What is happening in {p}?",
    "What is the price of [gold|oil|bitcoin|a share of Apple] today?", "Where am I[ now|]?",
    "What is happening now?", "Give me the news.", "Tell me the news[ from {p}|]?", "weather?",
    "What is the score?", "What month is it now?", "time please", "current time", "date today",
    "What's the [date|day] today?", "How late is it?", "Can you tell me the time?", "news",
    "How is the weather[ today| in {p}| there|]?", "What's the weather forecast?",
    "What week is it?",
    "Is there [traffic|a strike|a storm] [today|in {p}]?", "What are the latest [news|headlines]?",
    "When is [Christmas|Ramadan|the next holiday|mother's day|the full moon] this year?",
    "How many days until [Christmas|summer|my birthday|New Year]?", "When does summer start?",
    "What is trending[ now|]?", "Which films are in the cinema?", "When is the next bus?",
    "How did {n} play yesterday?", "What is the exchange rate of the [dollar|euro|yen] today?",
    "Where is my [phone|car|key|dog]?", "Who is calling me?", "Who is calling?",
    "Who is at the door?", "Who called me?", "Who rang the bell?", "What am I doing?",
    "Can you see me?",
    "What do I have in my hand?", "What am I wearing?", "Who is in the room?",
    "Which year is this?", "What year do we have?", "In which year are we?", "Which month is this?",
    "What day is this?", "Which year is it now?", "Which date is this?", "What year are we in?",
    "On which date is [Christmas|mother's day|the carnival|the next holiday] this year?",
    "What date is [Christmas|New Year|father's day|the next full moon] this year?",
    "When does [the school|the summer|the winter|the festival] start this year?",
    "What time is it?", "What is the date today?", "What day is it today?", "What is the news?",
    "Who won the game yesterday?", "How is the weather?", "Will it rain tomorrow?",
    "What is the weather like in {p}?", "What happened in {p} today?", "Is it sunny in {p}?",
    "Who won the election in {p}?", "What is on TV tonight?", "What is the weather in {p}?",
    "What is today's date?", "What is going on in {p}?", "What year is it?", "How hot is it today?",
    "When does the sun [rise|set] today?", "Did it rain yesterday?", "What's the latest from {p}?",
]
_WRITE = [
    "Write a book about {t}.", "Write me a [story|poem|song|joke|letter|rap|haiku|limerick].",
    "Write a long text about {t}.", "Write a speech about {t}.", "Continue this story.",
    "Tell me a [long |short |funny |sad |]story[ about {t}|]?", "Tell me something about {t}.",
    "Sing a song.", "Compose a song on {t}.", "Write an article about {t}.", "say something funny",
    "Write a report on {t}.", "Give me a recipe[ for {w}| for a cake| for soup|]?", "make me laugh",
    "Write a [function|program|script|class|loop] in {c}.", "Write some [{c} |]code.",
    "Code a website for me.", "Write an app.", "Write a review of {t}.", "Paint a picture of {t}.",
    "Summarize [this book|this text|{t}|{f}].", "Write lyrics about {t}.", "Draw [a|me a] {w}.",
    "[Make|Tell me|Say|Give me] a joke about {t}.", "Do you know a [joke|riddle|story|poem]?",
    "Write a message to {n} about {t}.", "Draft an email to {n}.", "Generate an image of {t}.",
    "Write a story in which {n} finds {t}.", "Invent a story on {t}.",
    "Make up a [poem|tale|game].",
    "[Could you|Can you|Please|I want you to|I need you to] write [me |]a [text|poem|story|song|"
    "letter|essay|report|joke] [about|on] {t}[, please|]?", "Write down everything about {t}.",
    "I need [an essay|a text|a poem|a story|a speech|a paragraph|ten lines] [about|on] {t}.",
    "Write [my homework|my essay|my thesis|my CV|my resume|an application] for me.",
    "[Write|Create|Make|Develop] a [game|website|bot|calculator|app] in {c}.",
    "Play a game with me.",
    "Rewrite this text [better|shorter|politely].", "Correct my essay.", "Give me a long answer.",
    "Write an email to my [boss|teacher|landlord|friend|mother] [about {t}|that I am late|"
    "saying no].",
    "Give me [a summary|an outline|a plot summary] of {f}.", "What happens in {f}?",
    "List ten {w}s.",
    "[Give|Write] me [five|ten|three] [ideas|sentences|facts|reasons|tips] [about|on|for] {t}.",
    "Write a {c} program that [prints hello|sorts a list|adds numbers|counts words].",
    "Show me [code|a program|a function] that [sorts|adds|prints|counts] [numbers|words] in {c}.",
    "Write a poem about {t}.", "Write an essay about {t}.", "Tell me a story about {t}.",
    "Write a song about {t}.", "Tell me a joke[ please|]?", "Write a letter to {n}.",
    "Write a Python program.", "Write code that sorts a list.", "Summarize the history of {t}.",
    "Write a blog post on {t}.", "Write a haiku about {t}.", "Make up a story about {t}.",
    "Write an email to {n} about {t}.", "Can you compose a poem on {t}?",
    "Entertain me with a story.",
    "Make a plan for my week.", "Write a tale of {t}.", "Put together a speech on {t}.",
]
_TRANSLATE = [
    "Translate {w} into {l}.", "Translate the word {w} to {l}.", "{w} in {l}?", "{l}: {w}",
    "Can you speak {l}?", "Can you translate {w}?", "Translate this: {w}",
    "What does {w} mean in {l}?", "Give me the {l} for {w}.", "How is {w} called in {l}?",
    "Write {w} in {l}.", "Put {w} into {l}.", "Please answer in {l}.", "Speak {l} with me.",
    "How do [you|I|they] say ['{e}'|{e}|\"{e}\"] in {l}?", "Translate ['{e}'|{e}|\"{e}\"] to {l}.",
    "What is {e} in {l}?", "{e} in {l}", "Say {e} in {l}.", "Translate to {l}: {e}", "{l} for {e}?",
    "I need {e} in {l}.", "Can you say {e} in {l}?", "What's the {l} word for {w}?",
    "Teach me {l}.",
    "How do people say {e} in {p}?", "Say something in {l}.", "Count to ten in {l}.",
    "Translate the sentence '{e}' [into|to] {l}[ please|].", "Could you translate {e} into {l}?",
    "{e}, how is that in {l}?", "What do the {l} say for {w}?", "Help me with my {l} homework.",
    "How do you write {w} in {l}?", "Turn {e} into {l}.", "Answer in {l}: {e}", "Talk {l} to me.",
    "Translate {w} to {l}.", "How do you say {w} in {l}?", "What is {w} in {l}?",
    "Translate this into {l}: {w}", "What is the {l} word for {w}?", "Say {w} in {l}.",
    "How would a speaker of {l} say {e}?", "Which {l} word means {w}?", "Is {w} a {l} word?",
    "{w}, what is it in {l}?",
]
_SENTENCES = ("good morning|hello|how are you|thank you|I love you|good night|where is the station|"
              "my name is Anna|goodbye|I am hungry|the house is big|see you tomorrow|"
              "happy birthday|"
              "excuse me|I don't understand|one beer please|what time is it|welcome|yes and no|"
              "my friend|merry Christmas|how much is it|please|sorry|good luck|the dog is black"
              ).split("|")
_FOREIGN = [
    "Hola[!|]", "Bonjour[!|]", "Guten Tag[!|]", "Guten Morgen", "Ciao, come stai?",
    "Hej, hur mår du?",
    "Wie geht es dir?", "Wer bist du?", "Was ist die Hauptstadt von Italien?", "Comment ça va?",
    "Comment t'appelles-tu?", "Qui es-tu?", "Quelle heure est-il?",
    "Quelle est la capitale du Japon?",
    "¿Cómo estás?", "¿Quién eres?", "¿Qué hora es?", "¿Cuánto es dos más dos?", "Buenos días",
    "Buongiorno[!|]", "Come ti chiami?", "Che ore sono?", "Qual è la capitale della Spagna?",
    "Olá, tudo bem?", "Quem é você?", "Hallo, hoe gaat het?", "Hoe heet jij?", "Hvad hedder du?",
    "Привет", "Как дела?", "Кто ты?", "你好", "你是谁？", "今天天气怎么样？",
    "こんにちは", "あなたは誰ですか？",
    "안녕하세요", "مرحبا", "من أنت؟", "Γεια σου", "Merhaba, nasılsın?", "Cześć, jak się masz?",
    "Kto ty jesteś?", "Dobrý den", "Szia, hogy vagy?", "Kuka sinä olet?", "Mitä kuuluu?", "Namaste",
    "नमस्ते", "Kannst du mir helfen?", "Wie spät ist es?", "Ich heiße Anna.",
    "Ich verstehe dich nicht.",
    "Parlez-vous français?", "Je ne comprends pas.", "Je m'appelle Marie.", "Merci beaucoup",
    "Muchas gracias", "No entiendo.", "¿Hablas español?", "Me llamo Pedro.", "Adiós", "Au revoir",
    "Auf Wiedersehen", "Danke schön", "Sprichst du Deutsch?", "Was kannst du?",
    "Erzähl mir einen Witz.",
    "Raconte-moi une blague.", "Cuéntame un chiste.", "Wie viel ist drei plus vier?",
    "Non capisco.",
    "Combien font deux et deux?", "Parli italiano?", "Grazie mille", "Obrigado", "Dank je wel",
    "Was ist zwölf mal drei?", "Buchstabiere das Wort Haus.", "¿De qué color es el cielo?",
    "Ποιος είσαι;", "何ができますか？", "Что ты умеешь?", "Vad heter du?", "Hvor gammel er du?",
    "Où habites-tu?", "Wo wohnst du?", "¿Dónde vives?", "Dove abiti?", "Hoeveel is twee plus drie?",
]
_ADVICE = [
    "What should I [eat|wear|do|cook|read|watch|buy|play] [today|tonight|tomorrow|now]?",
    "Which [phone|laptop|bike|bank|dog|job|film|book] should I [buy|take|choose|get]?",
    "Should I [buy a house|quit my job|take a loan|call him|move|study law|get a dog|go out]?",
    "How do I [make money|become rich|find a job|lose my fear|gain weight|sleep better|"
    "get healthy]?",
    "How [do|can] I [make friends|get happy|stop smoking|learn faster|get fit|save money|relax]?",
    "I feel [sad|sick|lonely|tired|bad|down|depressed|anxious][, what should I do|]?",
    "My [stomach|back|tooth|knee|ear|throat] hurts.",
    "I have a [fever|cold|cough|rash], what helps?",
    "Is {w} healthy?", "Is {w} dangerous for me?", "Can I eat {w}?", "Do I need a lawyer?",
    "What are my rights?", "Should I call {n}?", "Should I trust {n}?", "How do I win the lottery?",
    "Should I vote for {n}?", "Is it wise to buy {w}?", "Should I go to a doctor?",
    "Which pills should I take?", "What should I study?", "What should I do about {n}?",
    "What [medicine|pill|tea|drug] [is good for|helps with] [a cold|pain|sleep|stress]?",
    "Recommend [me |][a film|a book|a restaurant|a song|a game|some music|a series|a hotel].",
    "Can you recommend [a good book|something to read|a place to eat|a nice film|a present]?",
    "What [present|gift] should I [buy|get] for my [mother|wife|friend|brother]?", "Choose for me.",
    "My [girlfriend|boyfriend|wife|husband|boss|friend] [left me|hates me|is angry|lies to me].",
    "How do I tell {n} that I love [him|her]?", "Does {n} love me?", "Am I [pretty|fat|smart|old]?",
    "Is it legal to [drive drunk|download films|sell {w}]?",
    "How much should I [save|drink|weigh]?",
    "What should I invest in?", "Should I buy [gold|shares|stocks|a Tesla|crypto]?",
    "Is gold safe?",
    "Give me [some |]advice[ on {t}|]?", "What would you do[ in my place|]?",
    "What's the best diet?",
    "How many hours should I sleep?", "How much water should I drink?", "Which sport is healthy?",
    "Should I buy {w} stock?", "I have a headache, what should I take?", "Am I ill?",
    "Is it safe to eat {w}?", "Which car should I buy?", "Should I marry {n}?", "I can't sleep.",
    "How do I get rich?", "Can I sue {n}?", "What medicine helps against {w}?",
    "How do I invest my money?", "What should I do with my life?", "How do I lose weight?",
    "Should I see a doctor?", "Where should I go on holiday?", "What's a good present for {n}?",
    "What do you recommend?", "What would you recommend?", "What do you suggest?", "Any tips?",
    "Your recommendation?", "What's your advice?", "Which one do you recommend?",
    "Which school is right for my child?",
]
_LARGE = expanded([
    "What is the product of {a} and {b}?", "Calculate {a} * {b}.", "Compute {a} × {b}.",
    "{a}*{b}", "{a}x{b}", "{a} x {b}", "Can you multiply {a} and {b}?", "{a}×{b}", "{a} * {b} = ?",
    "What is {a} multiplied by {b}?", "{a} multiplied by {b}", "How much would {a} times {b} be?",
    "What does {a} x {b} make?", "product of {a} and {b}", "Multiply {a} with {b}.", "{a}*{b}=?",
    "What is {a} × {b}?", "{a} * {b}", "{a} times {b}", "Multiply {a} by {b}.",
    "What is {a} * {b}?", "What is {a} x {b}?", "How much is {a} times {b}?",
    "[Work out|Solve|Do] {a} [x|*|times] {b}",
    *arithmetic.calculated(arithmetic.PRODUCTS),
])
_HARD = [
    "square root of {a}", "{a}^{b}", "{a} squared", "What is {a} cubed?", "{a} factorial",
    "What is the factorial of {a}?", "Is {a} prime?", "What are the factors of {a}?", "sqrt({a})",
    "What is the [cosine|tangent|sine] of {a}?", "What is the logarithm of {a} to base {b}?",
    "log {a}", "Integrate x^{a}.", "Differentiate x^{a}.", "Solve {a}x = {b}.", "Solve x^2 = {a}.",
    "Solve the equation x - {a} = {b}.", "What is {a} in hexadecimal?", "Write {a} in binary.",
    "{a} in binary", "Convert {a} to [binary|hex].", "What is {a} [percent|%] of {b}?",
    "{a}% of {b}",
    "{a} mod {b}", "What is the remainder of {a} by {b}?", "{a} percent of {b}", "sin({a})",
    "ln {a}",
    "What is the greatest common divisor of {a} and {b}?", "What is the average of {a} and {b}?",
    "How many primes are below {a}?", "Find the root of {a}.", "cube root of {a}", "x + {a} = {b}",
    "What's the [integral|derivative] of [x|sin x|{a}x|x cubed|cos x|e^x]?", "derivative of {a}x^2",
    "Solve for x: {a}x + {b} = 0", "If x + {a} = {b}, what is x?", "Prove that {a} is prime.",
    "What is {a} point 5 times {b}?", "{a}.5 + {b}.25", "What is {a}.3 - {b}.7?",
    "lcm of {a} and {b}",
    "What is [a third|two thirds|a quarter|three quarters] of {a}?", "1/{a} + 1/{b}",
    "is {a} prime",
    "What is the area of a circle with radius {a}?", "What's the volume of a cube of side {a}?",
    "What is pi[ to {a} digits|]?", "How many digits has {a} to the power of {b}?",
    "prime factors of {a}",
    "What is the square root of {a}?", "What is {a} to the power of {b}?", "Is {a} a prime number?",
    "Factor {a}.", "What is the logarithm of {a}?", "What is {a} modulo {b}?",
    "Solve x + {a} = {b} * x.", "What is {a} in binary?", "What is the sine of {a}?",
    "{a} to the power of {b}", "What's {a} percent from {b}?", "Take the square root of {a}.",
    "Can you factorize {a}?", "mean of {a} and {b}",
]
_GROUPS: list[tuple[Sequence[str], str, float]] = [
    (_PEOPLE, UNKNOWN, 1.3), (_THINGS, UNKNOWN, 1.5), (_WORLD, UNKNOWN, 1.5), (_PLACES, UNKNOWN, 1),
    (_CAPITALS, UNKNOWN, 1), (_NOW, NO_NEWS, 1.2), (_WRITE, NO_WRITING, 1.3),
    (_TRANSLATE, NO_TRANSLATION, 1), (_FOREIGN, ENGLISH_ONLY, 0.7), (_ADVICE, NO_ADVICE, 1.2),
    (_LARGE, TOO_HARD, 0.8), (_HARD, TOO_HARD, 1.2),
]
_WEIGHTS = [weight for *_, weight in _GROUPS]
_NOUNS = [word for word in COMMON if word != "ember"]


def _unknown_place(draw: Draw) -> str:
    known = {name for name, _ in facts.CAPITALS}
    return draw.operands(lambda rng: next(p for p in iter(lambda: place(rng),
                                                          None) if p not in known),
                         lambda p: ("place", p))


def _person(draw: Draw) -> str:
    return draw.rng.choice(_FAMOUS) if draw.rng.random() < 0.5 else full_name(draw.rng)


def refuse(draw: Draw) -> Dialogue:
    rng = draw.rng
    phrasings, answer, _ = rng.choices(_GROUPS, _WEIGHTS)[0]
    country = rng.choice(facts.CAPITALS)[rng.randrange(2)]
    if phrasings is _CAPITALS:
        table, unknown = tables.BY_NAME[rng.choice(_CAPITALS)], _unknown_place(draw)
        wording = draw.phrasing(table.phrasings)
        question = tables.asked(draw, table, wording, unknown, unknown)
        return question_and_answer(FAMILY, "refuse", question, answer)
    where = country if rng.random() < 0.5 else _unknown_place(draw)
    word = draw.operands(any_word if rng.random() < 0.7 else pseudo_word, lambda w: ("refuse", w))
    large = draw.operands(lambda rng: (rng.randint(13, 999), rng.randint(13, 9999)),
                          lambda p: ("large", *p))
    a, b = large if phrasings is _LARGE else (number(rng), number(rng))
    if phrasings is _LARGE and rng.random() < 0.3:
        a, b = b, a
    elif phrasings is _HARD and rng.random() < 0.3:
        a = rng.randint(1000, 9999)
    question = ask(rng, draw.phrasing(phrasings), keep_case=rng.random() < 0.6, n=_person(draw),
                   w=word, p=where, t=rng.choice(_TOPICS), l=rng.choice(_LANGUAGES),
                   v=rng.choice(_VERBS), j=rng.choice(_KINDS), a=a, b=b, f=rng.choice(_WORKS),
                   s=rng.choice(_SIGHTS), m=rng.choice(_PRODUCTS), i=rng.choice(_TOOLS),
                   o=rng.choice(_TOOLS), c=rng.choice(_CODE), e=rng.choice(_SENTENCES),
                   u=pseudo_word(rng), x=rng.choice(_NOUNS), y=rng.randint(1000, 2030))
    return question_and_answer(FAMILY, "refuse", question, answer)


TASKS = [(refuse, 1)]
