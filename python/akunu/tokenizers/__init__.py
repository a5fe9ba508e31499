"""Vocabularies as files have them, and what turns text into token ids and back."""
