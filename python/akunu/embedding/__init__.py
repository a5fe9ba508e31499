"""Texts to vectors and to ranks."""
