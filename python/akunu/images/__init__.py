"""Images of a chat."""
