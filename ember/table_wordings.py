"""More wordings of the tables, put together from parts; `data/tables.txt` has the others."""

from .wordings import asking, asking_for, said_then_asked

MORE: dict[str, list[str]] = {
    "capital": [
        *asking_for("the capital of {k}", "{k}'s capital", "the capital city of {k}"),
        *asking(
            "what the capital of {k} is",
            "which city is the capital of {k}",
            "what {k}'s capital is called",
        ),
        *said_then_asked(
            "country",
            "{k}",
            [
                "What is its capital?",
                "What is the capital?",
                "Its capital?",
                "Which city is the capital?",
                "Tell me the capital.",
                "Name the capital city.",
            ],
        ),
        "[country: {k}|the country {k}|{k}|for {k}][, | and its | - ]capital[: ?|?| ...| city?]",
        "[Which|What] [city|town|place] is [the capital of {k}|{k}'s capital|{k}'s capital city]?",
        "[Where|In which city|From which city|In which capital] is {k} [governed|ruled]?",
        "Where [is the government of {k}|does the government of {k} sit]?",
        "[I am going|I travel|We fly] to the capital of {k}. [Which city is it|What is it called]?",
    ],
    "country of a capital": [
        *asking_for("the country with the capital {v}", "the country whose capital is {v}"),
        *asking(
            "which country has the capital {v}",
            "which country {v} is the capital of",
            "whose capital {v} is",
            "of which country {v} is the capital",
        ),
        *said_then_asked(
            "capital",
            "{v}",
            [
                "Which country is it?",
                "Which country has it?",
                "What is the country?",
                "Of which country?",
                "Name the country.",
                "Whose capital is it?",
            ],
        ),
        "[capital: {v}|the capital {v}|capital {v}][, | - |, which ]country[: ?|?| is it?]",
        "[Which|What] country is [governed|ruled|led] from {v}?",
        "[Which|What] country has its [capital|government|seat of government] in {v}?",
        "[Which|What] country's [government|parliament] is in {v}?",
        "{v} is the [capital|capital city|seat of government] of [which|what] [country|land]?",
        "[In|Of] [which|what] country is {v} the [capital|capital city]?",
        "[I am in|I live in|We fly to] the capital {v}. [Which|What] country is [that|it]?",
        "The government of [which|what] country is in {v}?",
    ],
    "continent": [
        *asking_for("the continent of {k}", "{k}'s continent"),
        *asking(
            "on which continent {k} is",
            "which continent {k} is in",
            "where {k} is",
            "where {k} lies",
            "which continent {k} belongs to",
        ),
        *said_then_asked(
            "country",
            "{k}",
            [
                "Which continent is it on?",
                "Which continent?",
                "Where is it?",
                "What is the continent?",
                "Name its continent.",
            ],
        ),
        "[country: {k}|{k}][, | - ]continent[: ?|?| ...]",
        "[Which|What] continent [is {k} in|is {k} on|does {k} lie on|is {k} part of|"
        "does {k} belong to|is home to {k}]?",
        "[On|In] [which|what] continent [is {k}|is {k} located|can I find {k}|do I find {k}|"
        "does {k} lie|is {k} found|would I find {k}]?",
        "{k} is [on|in|part of] [which|what] continent?",
        "Where [is {k}|is {k} located|does {k} lie|can I find {k}|is {k} found] [in the world|"
        "on the globe|on the map|on earth]?",
    ],
    "language": [
        *asking_for("the language of {k}", "{k}'s language", "the official language of {k}"),
        *asking("what people speak in {k}", "which language is spoken in {k}"),
        *said_then_asked(
            "country",
            "{k}",
            [
                "What do they speak?",
                "Which language is spoken?",
                "What is the language?",
                "Its language?",
            ],
        ),
    ],
    "symbol": [
        *asking_for("the symbol of {k}", "the chemical symbol of {k}", "the symbol for {k}"),
        *asking("what the symbol of {k} is", "which symbol {k} has", "how chemists write {k}"),
        *said_then_asked(
            "element",
            "{k}",
            [
                "What is its symbol?",
                "Its symbol?",
                "Symbol?",
                "What is the chemical symbol?",
                "Which symbol does it have?",
            ],
        ),
        "[element: {k}|the element {k}|{k}][, | - ][symbol|chemical symbol][: ?|?| ...]",
        "[Which|What] [symbol|chemical symbol|sign] [has {k}|does {k} have|stands for {k}|"
        "is used for {k}|do chemists use for {k}]?",
        "How [is {k} written|do you write {k}|do chemists write {k}|is {k} abbreviated|"
        "do I abbreviate {k}] [in chemistry|in the periodic table|as a chemical symbol]?",
    ],
    "element": [
        *asking_for(
            "the element with the symbol {v}", "the element {v}", "the chemical element {v}"
        ),
        *asking(
            "which element {v} is",
            "which element has the symbol {v}",
            "what the chemical symbol {v} means",
        ),
        *said_then_asked(
            "chemical symbol",
            "{v}",
            [
                "Which element is it?",
                "Which element?",
                "What element is that?",
                "Name the element.",
            ],
        ),
        "[symbol|chemical symbol][: | ]{v}[, | - ][element?|which element?|what element is it?]",
        "[Which|What] [element|chemical element] [is {v}|has the symbol {v}|is written {v}|"
        "is called {v} by chemists|does {v} stand for]?",
        "[In chemistry|In the periodic table], [what|which element] [is {v}|does {v} mean|"
        "is meant by {v}]?",
    ],
    "atomic number": [
        *asking_for("the atomic number of {k}", "{k}'s atomic number"),
        *asking("how many protons {k} has", "which number {k} has in the periodic table"),
        *said_then_asked(
            "element",
            "{k}",
            ["What is its atomic number?", "Its atomic number?", "How many protons does it have?"],
        ),
    ],
    "opposite": [
        *asking_for("the opposite of {k}", "the antonym of {k}", "a word for the opposite of {k}"),
        *asking("what the opposite of {k} is", "which word is the opposite of {k}"),
        *said_then_asked(
            "word",
            "{k}",
            [
                "What is its opposite?",
                "What is the opposite?",
                "Its opposite?",
                "Say the opposite.",
            ],
        ),
    ],
    "plural": [
        *asking_for("the plural of {k}", "the plural form of {k}", "{k} in the plural"),
        *asking(
            "what the plural of {k} is",
            "how to write {k} in the plural",
            "how more than one {k} is called",
        ),
        *said_then_asked(
            "word",
            "{k}",
            [
                "What is its plural?",
                "What is the plural?",
                "Plural?",
                "Its plural?",
                "Put it in the plural.",
            ],
        ),
        "[1|One|A single|I see one] {k}[, | but |; ][2|two|many|three] [...?|what?]",
        "[singular: {k}|the singular is {k}|singular {k}][, | - |; ]plural[: ?|?| ...]",
        "[Turn|Put|Change|Write] {k} [into|in] the plural.",
        "How [do you say|do I say|do you write|do I write|would you call|do you call] "
        "[two or more of a {k}|more than one {k}|{k} in the plural|many of a {k}]?",
        "[Two|Three|Many|Several] of a {k} are called [what?|...|which word?]",
        "[If|When] there is more than one {k}, [what do you say|which word is it|they are called]?",
    ],
    "past": [
        *asking_for(
            "the past tense of {k}",
            "the past of {k}",
            "the simple past of {k}",
            "the past form of {k}",
        ),
        *asking("what the past tense of {k} is", "how to put {k} in the past"),
        *said_then_asked(
            "verb",
            "{k}",
            [
                "What is its past tense?",
                "What is the past tense?",
                "Its past tense?",
                "Past tense?",
                "Put it in the past tense.",
            ],
        ),
        "[Today|Now|Every day] I {k}[, | and |; ][yesterday|last week|in the past] I[ ...?| what?]",
        "I {k} [today|now][, | and ][yesterday|last week|last year] I ...",
        "[today|present]: {k}[, |; | - ][yesterday|past|past tense][: ?|?]",
        "[Turn|Put|Change|Write] {k} [into|in] the [past|past tense|simple past].",
        "How [do you say|do I say|do you write|do I write] {k} in the [past|past tense]?",
        "[Which|What] is the [past|past tense|simple past] form of [the verb |]{k}?",
    ],
    "colour": [
        *asking_for("the colour of {k}", "{k}'s colour", "the usual colour of {k}"),
        *asking("what colour {k} is", "which colour {k} has"),
        *said_then_asked(
            "thing",
            "{k}",
            [
                "What colour is it?",
                "Which colour does it have?",
                "What is the colour?",
                "Its colour?",
            ],
        ),
        "[Which|What] colour [is {k}|has {k}|does {k} have|would you paint {k}|do I paint {k}|"
        "should I paint {k}|is right for {k}|do you see on {k}]?",
        "[In|With] [which|what] colour [do I paint {k}|would you paint {k}|do I draw {k}|"
        "is {k} painted]?",
        "How [is|would you say is] {k} coloured?",
        "How do you colour {k}?",
        "{k}[, | - |: ][colour?|which colour?|what colour is it?]",
    ],
    "young": [
        *asking_for("the young of {ak}", "the baby of {ak}", "the name of a young {k}"),
        *asking("what a young {k} is called", "what a baby {k} is called"),
        *said_then_asked(
            "animal",
            "{ak}",
            ["What is its baby called?", "What is its young called?", "Name its young."],
        ),
    ],
    "sound": [
        *asking_for("the sound of {ak}", "the sound {ak} makes", "the noise of {ak}"),
        *asking("what sound {ak} makes", "what {ak} says"),
        *said_then_asked(
            "animal", "{ak}", ["What sound does it make?", "What does it say?", "Its sound?"]
        ),
    ],
    "next month": [
        *asking_for("the month after {k}", "the next month after {k}"),
        *asking("which month comes after {k}", "what follows {k}"),
        "[It is|We have|This month is|Now it is] {k}. [What is the next month?|And next month?|"
        "Which month comes next?|Which month is next?]",
    ],
    "previous month": [
        *asking_for("the month before {k}", "the previous month of {k}"),
        *asking("which month comes before {k}", "what comes before {k}"),
        "[It is|We have|This month is|Now it is] {k}. [What was the last month?|And last month?|"
        "Which month was before?|Which month came before it?]",
    ],
    "next day": [
        *asking_for("the day after {k}", "the next day after {k}"),
        *asking("which day comes after {k}", "what day follows {k}"),
        "[Today is|It is|If today is|When today is|If it is|We have] {k}[, |. ][what is tomorrow?|"
        "which day is tomorrow?|what day is tomorrow?|and tomorrow?|tomorrow is ...]",
        "[Tomorrow|What is tomorrow|Which day is tomorrow|What day is tomorrow], [if|when] [today|"
        "it] is {k}?",
    ],
    "previous day": [
        *asking_for("the day before {k}", "the previous day of {k}"),
        *asking("which day comes before {k}", "what day is before {k}"),
        "[Today is|It is|If today is|When today is|If it is|We have] {k}[, |. ]"
        "[what was yesterday?|which day was yesterday?|what day was yesterday?|and yesterday?|"
        "yesterday was ...]",
        "[Yesterday|What was yesterday|Which day was yesterday|What day was yesterday], [if|when] "
        "[today|it] is {k}?",
    ],
    "number word": [
        *asking_for("the number {k} in digits", "{k} as a number", "{k} in digits"),
        "[Write|Put|Show|Give me|Say|Turn] [{k}|the number {k}|the word {k}] [in digits|"
        "as a number|in figures|with digits|into digits]",
        "How [do you write|do I write|would you write|does one write] [{k}|the number {k}] "
        "[in digits|as a number|in figures|with digits]?",
    ],
    "roman to number": [
        *asking_for(
            "the Roman numeral {v} as a number",
            "the value of the Roman numeral {v}",
            "the number of the Roman numeral {v}",
        ),
        "[What|Which number] [is|does] the Roman [numeral |number |]{v}[ mean|]?",
        "[Turn|Convert|Change] [{v}|the Roman numeral {v}|Roman {v}] [into|to] [a number|digits|"
        "a normal number].",
        "[Which|What] number [is the Roman numeral {v}|did the Romans write as {v}|"
        "do Romans write as {v}|is written {v} in Roman numerals]?",
    ],
}
