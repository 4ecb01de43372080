"""Measurements, each as a ratio to a peer in the same run. `nox -s bench`, or `python -m bench.store --help`."""
