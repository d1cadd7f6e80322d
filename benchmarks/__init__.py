"""Every number that README and RESULTS.md state is printed by a script here: `make bench`, or one by its name.

Ratios are taken in one run, since the machine under them is shared and noisy. Peers are installed from
PyPI into a venv of their own under `benchmarks/.work`.
"""
