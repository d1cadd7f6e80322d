"""A widget is given data and draws it."""
