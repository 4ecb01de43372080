"""Programs outside refmq that parts of it need (a Java runtime, TLC, Spark): where they are and how to get them.

Imports nothing but the standard library and ``refmq.errors``, so that the checks can use it before anything is
installed.
"""
