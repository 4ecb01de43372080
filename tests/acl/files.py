"""An ACL file for tests, and requests that are signed."""

from __future__ import annotations

from refmq.acl.check import Guard, broker_guard
from refmq.acl.policy import join_files, read_file
from refmq.protocol.acl import Credentials, sign
from refmq.protocol.command import RemotingCommand, request

PEER = "10.9.9.9:40000"
REPLY_TOPIC = "DefaultCluster_REPLY_TOPIC"

ADMIN = Credentials("administrator", "admin-secret")
ALICE = Credentials("alice-key", "alice-secret")
BOB = Credentials("bob-key", "bob-secret")
LIMITED = Credentials("limited-admin", "limited-secret")

TEXT = """
globalWhiteRemoteAddresses:
- 10.10.103.*
accounts:
- accessKey: administrator
  secretKey: admin-secret
  admin: true
- accessKey: alice-key
  secretKey: alice-secret
  whiteRemoteAddress: 192.168.0.7
  admin: false
  defaultTopicPerm: DENY
  defaultGroupPerm: SUB
  topicPerms:
  - orders=PUB|SUB
  - read-only=SUB
  - write-only=PUB
  - closed=DENY
  groupPerms:
  - alice-group=SUB
  - closed-group=DENY
- accessKey: bob-key
  secretKey: bob-secret
- accessKey: limited-admin
  secretKey: limited-secret
  admin: true
  topicPerms:
  - orders=SUB
"""


def guard(text: str = TEXT) -> Guard:
    return broker_guard(join_files({"plain_acl.yml": read_file(text.encode(), "plain_acl.yml")}), REPLY_TOPIC)


def signed(code: int, who: Credentials, fields: dict[str, str] | None = None, body: bytes = b"") -> RemotingCommand:
    return sign(request(code, fields or {}, body), who)
