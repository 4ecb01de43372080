"""Mistakes put into the store on purpose, to see that the histories find them.

`seeded` holds mistakes by hand, most of them bugs that real stores have had; `mechanical` makes them by rule, from
the syntax tree of any module. `python -m conformance.mutants --help`.
"""
