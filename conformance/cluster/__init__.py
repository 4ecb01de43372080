"""Histories of whole clusters in the simulated world."""
