"""The steps of the broker's control plane.

Pure: time is an argument, writes and replies are effects.
"""
