"""Values and state shared by every layer: typed offsets, messages, effects and engine protocols.

Pure: nothing here reads a clock, a socket, a file or a random number.
"""
