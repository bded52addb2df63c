"""Answers of a prescribed form: JSON schema, regular expression, choices."""
