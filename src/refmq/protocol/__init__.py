"""Bytes on the wire and the values they stand for: frames, headers, codes and bodies.

Pure: decoding takes bytes and returns values or raises ``WireError``; nothing here opens a socket.
"""
