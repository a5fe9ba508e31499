"""What every other package may use: checks of arguments, files, messages."""
