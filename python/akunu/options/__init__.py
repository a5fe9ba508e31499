"""The options of a text and of a model: each checked when it is passed."""
