"""Judging large traces with Spark: the same promises as the oracles, by the same names.

    checks         how each promise is checked, and what is asked of its oracle
    columns        trace files as numpy columns, names as hashes
    digest         sums over all events of a range of places, in C or numpy
    *_screen       streams of brokers and clients proved regular in columns
    scan, facts    one pass over a stream, and the small table that it yields
    plans, rows    the SQL: ranges that differ, and the rows that explain it
    examine        an oracle is shown the events of its suspects
    judge          all of this in its order, on any engine
    tasks, sources, session    Spark as the engine

Nothing here is imported by the rest of refmq unless `refmq verify` asks for Spark.
"""
