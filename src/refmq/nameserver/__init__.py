"""The steps of the name server: registration, routes and expiry.

Pure: time is an argument, replies are effects.

| module         | holds                                                                              |
|----------------|------------------------------------------------------------------------------------|
| ``tables``     | the five tables of routes as persistent maps, and what they promise               |
| ``registration`` | steps: a broker registers, asks for its version, leaves, expires, loses its channel |
| ``topics``     | routes and lists of topics, and the steps that change permissions and topics       |
| ``kv``         | the key-value configuration and its file                                           |
| ``settings``   | the keys of namesrv.conf, and which of them may be changed over the wire           |
| ``serve``      | from a request to a step and back                                                  |
"""

from __future__ import annotations

from refmq.nameserver.serve import SERVERS

SERVED = frozenset(SERVERS)
"""Every request code that a nameserver serves."""
