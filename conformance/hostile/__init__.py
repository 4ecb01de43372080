"""Attacks on running servers: what anybody who reaches the port can send, and what must hold all the same.

Each attack is a function of a `Target`. Behind it the server lives, has said nothing that looks like a bug, serves the
neighbour who was served all the time, and starts again with everything that it has acknowledged.
"""
