"""The pipeline of a text: render, encode, submit, decode."""
