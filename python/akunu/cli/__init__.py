"""The command line: `akunu` and `akunu-chat`."""
