"""Models by name: where they are on this machine, and how they are fetched.

`names` reads what a user typed, `find` decides where that is, `choice` picks a file of a
repository. `repository` (the Hugging Face hub) and `address` (any other https address) download,
both through `transfer`; `outline` fetches a model's header alone. `neighbours` knows the models of
Ollama and LM Studio, `shelf` lists and removes what is here.

Nothing here prints: a `Watch` receives the progress. Nothing is imported before it is needed.
"""
