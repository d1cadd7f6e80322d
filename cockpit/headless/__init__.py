"""`cockpit run` and friends: engine events become plain or JSON lines. Never loads Textual."""
