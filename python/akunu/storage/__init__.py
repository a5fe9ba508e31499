"""Files of models, of saved sessions and of the disk cache."""
