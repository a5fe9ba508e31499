"""Patterns of JSON schemas, which are ECMAScript's."""
