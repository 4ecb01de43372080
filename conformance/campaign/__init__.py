"""Campaigns: one history per seed, for as long as it may take, on as many processors as it may use.

kinds.py      one history of any kind: made from a seed, lived through, judged
workers.py    processes that do this for stretches of seeds; one that dies or hangs is a finding, too
findings.py   what was found: counted by class, and the first of each class saved, shrunk
ledger.py     which seeds were lived through by which version: a campaign goes on where the last one ended
run.py        the loop
"""
