"""The exercises: one folder each (`statement.md`, `answers.py`, `checks.py`, `known/`), found by looking."""
