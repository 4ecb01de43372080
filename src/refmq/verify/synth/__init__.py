"""Traces of whole clusters that nobody ran: as many events as are asked for, and mistakes where they are known.

cluster   brokers, producers and consumers in closed form: event number n is computed, nothing is kept
tales     transactions, delays, batches, locks and lookups at the end, each kept or broken
plants    the kinds of violations, and where they are planted
streams   the streams of a cluster, as chunks for Spark or as files
"""
