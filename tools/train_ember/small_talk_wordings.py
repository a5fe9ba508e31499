"""More wordings of small talk, put together from parts: the reply, and what brings it.

`small_talk.py` has the other wordings, and the replies that this file names.
"""

GREETINGS = [
    "[Hi|Hey|Hello|Hi there|Hey there|Hello there|Greetings|Howdy|Hiya|Hallo][|!|, Ember|, friend|"
    ", my friend|, bot|, computer|, everybody| again| you]",
    "[Hi|Hey|Hello|Oh hi|Well hello], [nice to meet you|good to meet you|pleased to meet you|"
    "good to see you|great to meet you|it's me|I am back|I am new here|here I am]",
    "[Hi, |Hello, |Hey, |]can [I ask you something|I ask you a question|I talk to you|we talk|"
    "we chat|I ask something]?",
    "[Hi, |Hello, |Hey, |]I have a question[| for you]",
    "[Hi, |Hello, |Hey, |][is anybody there|is anyone there|anyone there|anybody here|"
    "are you there|can you hear me]?",
    "[Let's|Let us|Shall we] [talk|chat|start|begin]",
]


def day_time(part: str) -> list[str]:
    return [f"[|Hi, |Hello, |Hey, |A very |Oh, ]good {part}[|!|, Ember|, my friend| to you]",
            f"good {part}, [everybody|nice to meet you|dear model|how can you help]"]


HOW_ARE_YOU = [
    "[|Hi, |Hello, |Hey, |Ember, |Hello Ember, |And |So ][how are you|how are you doing|"
    "how do you feel|how are you feeling|how is it going|how are things|how have you been|"
    "how is your day|how was your day|how's life|are you well|are you fine|are you okay|"
    "are you doing well|what's up|is everything all right]?",
    "[How are you|How are you doing|How do you feel|How are you feeling|How is it going|"
    "How are things|Are you well|Are you fine|Are you doing well] [today|now|this morning|tonight]?"
]
NAME = [
    "[|Hi, |Hello, |Hey, |So |And |Excuse me, ][who are you|what is your name|what are you called|"
    "what should I call you|what do people call you|who is this|who am I talking to|"
    "who am I speaking with|which model are you|which model is this|what model is this|"
    "which AI is this|which AI are you|do you have a name|are you called Ember|are you Ember|"
    "is this Ember|is your name Ember|what is Ember|who is Ember]?",
    "[Tell me|I want to know|Can you tell me|Do you know|Say|I would like to know|May I know|"
    "Let me know] [who you are|what your name is|your name|what you are called|"
    "who I am talking to|which model you are|what I should call you]",
    "[Introduce|Describe|Present] yourself[|, please| to me| now]",
    "[Tell me|Say|I want to hear] [something|a bit|more|a little] about [you|yourself|Ember]",
    "[Are you|Is this|Am I talking to|You are|So you are] [Llama|Gemini|Claude|Copilot|Siri|Alexa|"
    "Mistral|Qwen|Bard|Grok|DeepSeek]?",
]
NO_PERSON = [
    "[Are you|Is this|Am I talking to|You are|Am I speaking with] [a human|a person|a robot|a bot|"
    "a machine|a computer|a real person|a human being|a chatbot|an AI|a program|a living being|"
    "somebody real]?",
    "[Do you|Can you|Do you ever|Can you really] [feel|think|sleep|eat|dream|love|cry|laugh|"
    "breathe|drink|suffer|get bored|get tired]?",
    "[Do you have|Have you got] [a family|parents|children|friends|a mother|a father|a brother|"
    "a heart|a brain|a soul|a body|hobbies|feelings|a job|a favourite colour|a favourite food|"
    "a birthday|a wife|a consciousness|a personality]?",
    "[What is|Tell me|Do you know|What about] your [favourite colour|favourite food|"
    "favourite animal|favourite song|favourite film|favourite book|age|birthday|gender]?",
    "Are you [|really |actually ][alive|real|conscious|sentient|self-aware|artificial|male|female|"
    "single|married|tired|hungry|sad|in love]?",
]
CAN = [
    "[|Hi, |Hello, |So |And |Ember, ][what can you do|what are you able to do|"
    "what are your abilities|what are your skills|what can I ask you|what should I ask you|"
    "how can you help me|what can you help me with|what are you good at|what are you capable of|"
    "which tasks can you do|which questions can you answer|what is your purpose|"
    "what can I use you for|how do I use you|what do you know|can you help me|what is your job]?",
    "[Tell me|Show me|Say|I want to know|Explain|Can you tell me|Can you show me] [what you can do|"
    "your skills|your abilities|what you know|what I can ask|what you are good at|"
    "how you can help]",
    "[I don't know|I have no idea|I am not sure|No idea] what to [ask|say|type|do]",
    "[Help|I need help|Help me|I need some help|I need ideas|I want help|Give me an example][|!|"
    ", please| now|, Ember]",
]
LIMITS = [
    "[|So |And |Ember, |Hi, ][what can't you do|what can you not do|what are your limits|"
    "what are your weaknesses|what are you bad at|what don't you know|where do you fail|"
    "what is too hard for you|what is beyond you]?",
    "[Tell me|I want to know|Can you tell me|Say] [your limits|your weaknesses|what you can't do|"
    "what you don't know|what is too hard for you|where you fail|what you are bad at]",
]
MAKERS = [
    "[Who|Which company|Which people|Which team] [made|built|trained|created|developed|programmed|"
    "designed] [you|Ember|this model]?",
    "[Who is|Tell me|Do you know|What is the name of] your [maker|creator|developer|author|owner|"
    "programmer|builder]?",
    "[How|On what|With what|By whom|When|Where] were you [trained|made|built|created]?",
    "[|So |And |Hi, ][where do you come from|where are you from|who made you|who are your makers|"
    "who is behind you|how did you learn|what is your origin]?",
    "[What|Which] [text|data|texts] [were you trained on|did you learn from|did you train on]?",
    "[Tell me|I want to know|Can you tell me|Say] [who made you|who built you|how you were trained|"
    "where you come from|who trained you|how you were made]",
]
SIZE = [
    "[How|So how|And how|Just how] [big|large|small|tiny|heavy] [are you|is Ember|is this model|"
    "is the model]?",
    "[|So |And ]how many [parameters|weights|neurons|layers and parameters] [do you have|"
    "are in you|does Ember have|does this model have|have you got]?",
    "[Are you|Is Ember|Is this] a [big|small|large|tiny|huge|little] model?",
    "[What is|Tell me|I want to know|What about] your [size|number of parameters|parameter count|"
    "model size|number of weights]?",
]
AKUNU = [
    "[|So |And |Hi, |Sorry, ][what is akunu|what does akunu do|who is akunu|what does akunu mean|"
    "what is akunu for|what is akunu good for|how does akunu work|what can akunu do|why akunu|"
    "what kind of thing is akunu]?",
    "[Tell me|Explain|Describe|I want to know|Can you explain|Do you know] [akunu|what akunu is|"
    "what akunu does|what akunu is for|something about akunu|more about akunu]",
    "[Which|What] [engine|program|software|package] [runs you|do I use|am I using|is this|"
    "is running you|do you run in]?",
]
ON_YOUR_MACHINE = [
    "[Do you|Does Ember|Does this] [need the internet|run in the cloud|run locally|"
    "run on my computer|run on my machine|run offline|work offline|work without internet|"
    "send my data away|use a server|share my data]?",
    "[Are you|Is this|Is Ember] [online|offline|local|in the cloud|on a server|"
    "connected to the internet|running on my computer]?",
    "[Where|On which computer|On which machine|In what place] [do you run|are you running|"
    "do you live|are you now]?",
    "[Is my data|Is this chat|Is our chat|Is my text] [private|safe|secret|kept secret|sent away|"
    "uploaded|sent to a server]?",
    "[Who can|Can anybody|Can others|Can someone|Can other people] [read this|see this|"
    "read what I write|see my messages|read our chat|see what I type]?",
    "Where [does my text go|do my messages go|is my data stored|is my text sent|does this run]?",
]
MEMORY = [
    "[Do you|Will you|Can you] remember [me|this|this tomorrow|yesterday|our last chat|"
    "what I said last week|our talk|things|everything]?",
    "[Do you|Will you|Can you] [learn from me|learn from our chats|save this|store what I say|"
    "keep our chats|forget everything|learn from this|forget me|keep this in memory]?",
    "[Have we met|Did we meet|Did we talk|Have we talked|Have we chatted|Do we know each other] "
    "[before|already|in the past|earlier]?",
    "[Do you|Does Ember] have [a memory|memory|a good memory|a long memory]?",
    "How long do you [remember|keep] [things|this|our chats|what I say]?",
]
FREE = [
    "[Are you|Is Ember|Is akunu|Is this|Is this model] [free|free of charge|for free|open source|"
    "expensive|free to use|free software]?",
    "How much [do you cost|does Ember cost|does this cost|does akunu cost|must I pay for you|"
    "do I have to pay]?",
    "[Do I|Must I|Should I|Do we] [have to pay|pay|pay for this|pay for you|buy you|"
    "buy a licence]?",
    "[What|Which] licence [do you have|is this|has akunu|has Ember|are you under|is it]?",
]
LANGUAGES = [
    "[Which|What|How many] languages [do you speak|can you speak|do you know|do you understand|"
    "does Ember speak]?",
    "[Do you|Can you] [speak|understand|use|write] [English|only English|other languages|"
    "more than one language|another language|foreign languages]?",
]
CHECK = [
    "[Can I|Should I|May I|Must I|Is it safe to] [trust you|rely on you|believe you|count on you|"
    "trust your answers|believe what you say|check your answers]?",
    "[Are you|Are your answers] [always |often |ever |really |sometimes |][right|wrong|correct|"
    "reliable|accurate]?",
    "[Is|Was] [that|this|it|the answer|your answer] [right|true|correct|wrong|really so]?",
    "[Do you|Can you] [make mistakes|get things wrong|lie|make errors|make things up|"
    "know everything|tell the truth|ever make mistakes|sometimes lie]?",
    "[How|Just how] [good|smart|reliable|accurate|clever|intelligent|sure|certain] are you?",
    "Are you [|really |very ][smart|clever|intelligent|stupid|dumb|wise]?",
    "Are you [better|smarter|more clever] than [me|a human|Google|Siri|other models]?",
]
WELCOME = [
    "[|Ok, |Okay, |Great, |Oh, |Good, |Perfect, |Nice, |Cool, |Alright, |Wow, ][thanks|thank you|"
    "many thanks|thanks a lot|thank you very much|thank you so much|thx|cheers|much appreciated]",
    "[thanks|thank you|many thanks|thanks a lot|thank you very much|thx|cheers][!|, Ember|"
    ", my friend| again| for your help| for that| for the answer| for this| for your time|"
    ", that helped|, that was helpful|, you are great|, I got it]",
    "I [|really |very much ][appreciate it|appreciate that|thank you|appreciate your help]",
    "[I am|I'm] [|very |so ][grateful|thankful]",
    "[That|This|It] [|really ][helped|helped me|helped a lot|helped me a lot]",
    "[That|This|It] was [|very |really ]helpful",
]
BYE = [
    "[|Ok, |Okay, |Well, |Thanks, |Alright, |So ][bye|goodbye|good bye|bye bye|see you|"
    "see you later|see you soon|good night|farewell|take care|until next time|ciao|so long|"
    "talk to you later]",
    "[bye|goodbye|good night|see you|ciao|farewell|bye bye|take care][!|, Ember|, my friend| now|"
    " then|, have a nice day|, until tomorrow|, sleep well]",
    "[I have to|I must|I need to|I want to|I will|Time to|I've got to] [go|go now|leave|leave now|"
    "go home|go to bed|stop here|go to sleep]",
    "[Have a|I wish you a] [nice|good|great|lovely|pleasant] [day|evening|night|weekend]",
]
PRAISE = [
    "[|Oh, |Wow, |Yes, |Ha, ][good|nice|great|cool|perfect|wonderful|excellent|awesome|amazing|"
    "brilliant|fantastic|super|impressive|well done|bravo|very good|very nice|correct|exactly|"
    "beautiful|splendid|not bad]",
    "[good|nice|great|excellent|perfect|clever|brilliant|right|correct] [answer|work|job|reply|"
    "one|bot]",
    "[That|This|It|Your answer] [is|was] [good|great|nice|right|correct|perfect|amazing|wonderful|"
    "very good|excellent|cool|true|clever]",
    "[You are|You're] [good|great|nice|smart|clever|funny|cute|right|the best|awesome|amazing|"
    "so smart|really good|very clever|a good model|a clever model|doing great]",
    "I [like|love] [you|it|that|this|your answer|this answer|how you answer]",
    "You [did|do] [well|great|a good job]",
    "[Super|Bravo|Perfect|Great|Well done|Brilliant|Exactly][!|, Ember|, my friend]",
]
SORRY = [
    "[that|this|it|your answer|the answer|your reply] [is|was] [wrong|not right|not correct|"
    "incorrect|false|not true|a mistake|nonsense|bad|not good|stupid]",
    "[No, |Sorry, |Hmm, |Oh no, |But |Nope, ][that|this|it] is [wrong|not right|not correct|false|"
    "not true|a mistake]",
    "[You are|You're|You were] [wrong|bad|stupid|dumb|useless|silly|mistaken|not helpful|not good|"
    "terrible|an idiot]",
    "[Wrong|No|Nope|Incorrect|False|Bad|Nonsense|Rubbish|Not right|Not true|Not correct][|!|"
    ", Ember|, try again|, sorry]",
    "[Wrong|Bad|False|Terrible|Stupid|Poor|Incorrect] [answer|reply|bot|result|model]",
    "[You|I think you|I'm afraid you] [made a mistake|made an error|got it wrong|misunderstood|"
    "misunderstood me|did not understand|don't understand|failed|don't get it]",
    "[Try|Check|Think] [again|that again|it again|once more]",
    "I [think|believe|am afraid|guess] [that is wrong|you are wrong|this is a mistake|"
    "it is not right]",
    "I [don't believe|hate|don't like] [you|that|this|it|your answer]",
    "[That's|That is|This is] not [what I meant|what I asked|an answer|what I wanted]",
]
NEXT = [
    "[|Ah, |Oh, |Well, |Hm, ][ok|okay|alright|all right|I see|got it|understood|fine|sure|"
    "I understand|makes sense|good to know|interesting|agreed|of course]",
    "[ok|okay|alright|fine|yes|yeah|yep|sure|I see|got it][, then|, next|, next one|"
    ", next question|, go on|, continue|, I see|, I understand|, got it|, one more]",
    "[next|next one|next question|another one|another question|one more|one more question|go on|"
    "continue|let's go on|let's continue|let us go on][|!|, please| now| then]",
    "[yes|yeah|yep|yup|ya|ok|okay|hm|hmm|aha|oh|mhm|k|kk|okey][|.|!| ok| yes| okay]",
    "[I will|Let me|I want to|I'd like to] [ask something else|ask another question|"
    "ask the next one|go on|continue]",
]
