"""The steps of the name server: registration, routes and expiry.

Pure: time is an argument, replies are effects.
"""
