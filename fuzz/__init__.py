"""Fuzzing of heald: every mutant of a file ends in a result or a typed error, in bounded time and memory.

`python -m fuzz` is the command, docs/fuzzing.md the manual, and `targets.py` the table of formats.
"""
