"""Bytes on the wire and the values they stand for: frames, headers, codes, bodies and messages.

Pure: decoding takes bytes and returns values or raises ``WireError``; nothing here opens a socket.

| module                            | holds                                                                   |
|-----------------------------------|-------------------------------------------------------------------------|
| ``frame``                         | frames: the incremental decoder, the encoder                            |
| ``command``                       | a request or response as a value                                        |
| ``header_json, header_binary``    | the two forms of a header                                               |
| ``codes, registry``               | request and response codes; who serves what, with which header and body |
| ``headers``                       | the fields of each request and response                                 |
| ``bodies``                        | JSON bodies                                                             |
| ``fastjson, json_text``           | the dialect in which Java writes them                                   |
| ``record``                        | messages, batches, properties, offset ids                               |
| ``compression``                   | compressed message bodies                                               |
| ``unique_id``                     | ids that clients give to messages                                       |
| ``acl``                           | signatures                                                              |
| ``names``                         | properties, topics, groups, namespaces                                  |
| ``properties``                    | texts of ``key=value`` lines                                            |
| ``versions``                      | version numbers                                                         |
"""

from __future__ import annotations

from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import LanguageCode, RemotingCommand, SerializeType, oneway, request, response
from refmq.protocol.frame import FrameDecoder, decode, encode

__all__ = [
    "FrameDecoder",
    "LanguageCode",
    "RemotingCommand",
    "RequestCode",
    "ResponseCode",
    "SerializeType",
    "decode",
    "encode",
    "oneway",
    "request",
    "response",
]
