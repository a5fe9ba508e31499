"""What clients store and ask for again: responses, conversations, files and batches."""
