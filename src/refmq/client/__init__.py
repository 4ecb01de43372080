"""The steps of producers and consumers: routes, rebalancing, retries, offsets.

Pure: time and randomness are arguments, requests are effects.
"""
