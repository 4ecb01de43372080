"""Recordings of real processes, and traces of histories, judged by TLC."""
