"""Checks of recorded traces and store directories against the invariants of the specifications."""
