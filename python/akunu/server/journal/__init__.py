"""Answers that are kept, so that they continue after a lost connection."""
