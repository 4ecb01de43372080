"""Histories of a consumer group: real consumers and a real producer in a simulated cluster, and what must hold."""
