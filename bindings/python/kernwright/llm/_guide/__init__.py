"""Texts of a form that is given: JSON of a schema, regular expressions, grammars, choices."""
