"""The linter of prose: docs/glossary.md lists what it refuses and what to write instead."""
