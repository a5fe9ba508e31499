"""Whisper's vocabulary and languages."""
