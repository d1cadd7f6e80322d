"""A screen wires widgets to the engine; it knows no wire."""
