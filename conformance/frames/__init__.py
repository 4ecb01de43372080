"""The same random frames over real sockets to two brokers, one on each engine: the same answers and the same files.

Both listen on one port of two loopback addresses and call themselves the same, and their clients come from one port:
so a difference is a difference, but for the times at which messages were stored.
"""
