"""Answers that are kept, so that they go on after a lost connection."""
