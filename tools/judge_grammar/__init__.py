"""Outside judges of structured output: schemas and grammars that others published."""
