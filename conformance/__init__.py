"""The conformance suite: histories, the engines that live through them, and the oracles that judge.

`python -m conformance --help` replays saved histories and runs campaigns; `nox -s conformance` runs everything.
"""
