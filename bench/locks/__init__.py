"""What a lock costs, beside the bare commands it is made of and beside the libraries people use otherwise.

`python -m bench.locks [--rounds N] [--only NAME] [--json | --markdown]`; `docs/bench-locks.md` is what it wrote last.
"""
