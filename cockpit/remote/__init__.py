"""Programs that run on hosts: standard library only, Python 3.6 or newer. Read as text and shipped, never imported."""
