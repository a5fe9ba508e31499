"""Finds the parts of audio that have speech."""
