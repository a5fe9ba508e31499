"""Grammars in llama.cpp's notation, GBNF."""
