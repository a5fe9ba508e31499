"""A conversation at a terminal."""
