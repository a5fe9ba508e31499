"""Reading from a terminal and writing to it."""
