"""Shells for the real world: sockets, files and clocks. Short, and with no protocol decisions."""
