"""A second opinion on the codecs: RocketMQ's own classes read what we write and write it again.

``JavaCodec`` runs interop/java/Codec.java against one version of the clients and puts questions to it, one by one.
"""

from __future__ import annotations

import select
import subprocess
from types import TracebackType
from typing import Final, Self

from interop import artifacts
from refmq.errors import RefmqError
from refmq.protocol import headers
from tests.protocol.upstream import OUR_NAMES, upstream_headers

ANSWER_TIMEOUT_S: Final = 60  # the first answer waits for the class loader
END_TIMEOUT_S: Final = 10


# Our body class -> the class of 4.9.8 (below org.apache.rocketmq.common) and of 5.3.3 (below ...remoting.protocol).
# None: that version has no such body.
JAVA_BODIES: Final[dict[str, tuple[str | None, str | None]]] = {
    "BatchAckRequestBody": (None, "body.BatchAckMessageRequestBody"),
    "BrokerStatsData": ("protocol.body.BrokerStatsData", "body.BrokerStatsData"),
    "CheckClientRequestBody": ("protocol.body.CheckClientRequestBody", "body.CheckClientRequestBody"),
    "ClusterInfo": ("protocol.body.ClusterInfo", "body.ClusterInfo"),
    "ConsumeMessageDirectlyResult": (
        "protocol.body.ConsumeMessageDirectlyResult",
        "body.ConsumeMessageDirectlyResult",
    ),
    "ConsumeQueueDump": ("protocol.body.QueryConsumeQueueResponseBody", "body.QueryConsumeQueueResponseBody"),
    "ConsumeStats": ("admin.ConsumeStats", "admin.ConsumeStats"),
    "ConsumeStatsList": ("protocol.body.ConsumeStatsList", "body.ConsumeStatsList"),
    "ConsumerConnection": ("protocol.body.ConsumerConnection", "body.ConsumerConnection"),
    "ConsumerIdList": (
        "protocol.header.GetConsumerListByGroupResponseBody",
        "header.GetConsumerListByGroupResponseBody",
    ),
    "ConsumerOffsets": ("protocol.body.ConsumerOffsetSerializeWrapper", "body.ConsumerOffsetSerializeWrapper"),
    "ConsumerRunningInfo": ("protocol.body.ConsumerRunningInfo", "body.ConsumerRunningInfo"),
    "CorrectionOffsets": ("protocol.body.QueryCorrectionOffsetBody", "body.QueryCorrectionOffsetBody"),
    "DataVersion": ("DataVersion", "DataVersion"),
    "GetConsumerStatusBody": ("protocol.body.GetConsumerStatusBody", "body.GetConsumerStatusBody"),
    "GroupList": ("protocol.body.GroupList", "body.GroupList"),
    "HeartbeatData": ("protocol.heartbeat.HeartbeatData", "heartbeat.HeartbeatData"),
    "KVTable": ("protocol.body.KVTable", "body.KVTable"),
    "LockBatchRequestBody": ("protocol.body.LockBatchRequestBody", "body.LockBatchRequestBody"),
    "LockBatchResponseBody": ("protocol.body.LockBatchResponseBody", "body.LockBatchResponseBody"),
    "ProducerConnection": ("protocol.body.ProducerConnection", "body.ProducerConnection"),
    "ProducerTableInfo": ("protocol.body.ProducerTableInfo", "body.ProducerTableInfo"),
    "QueryAssignmentRequestBody": (None, "body.QueryAssignmentRequestBody"),
    "QueryAssignmentResponseBody": (None, "body.QueryAssignmentResponseBody"),
    "QueryConsumeTimeSpan": ("protocol.body.QueryConsumeTimeSpanBody", "body.QueryConsumeTimeSpanBody"),
    "QuerySubscriptionResponseBody": (None, "body.QuerySubscriptionResponseBody"),
    "RegisterBrokerBody": ("protocol.body.RegisterBrokerBody", "body.RegisterBrokerBody"),
    "ResetOffsetBody": ("protocol.body.ResetOffsetBody", "body.ResetOffsetBody"),
    "SetMessageRequestModeBody": (None, "body.SetMessageRequestModeRequestBody"),
    "SubscriptionGroupConfig": ("subscription.SubscriptionGroupConfig", "subscription.SubscriptionGroupConfig"),
    "SubscriptionGroupList": (None, "body.SubscriptionGroupList"),
    "SubscriptionGroupWrapper": ("protocol.body.SubscriptionGroupWrapper", "body.SubscriptionGroupWrapper"),
    "TopicConfigList": (None, "body.CreateTopicListRequestBody"),
    "TopicConfigSerializeWrapper": (
        "protocol.body.TopicConfigSerializeWrapper",
        "body.TopicConfigSerializeWrapper",
    ),
    "TopicList": ("protocol.body.TopicList", "body.TopicList"),
    "TopicRouteData": ("protocol.route.TopicRouteData", "route.TopicRouteData"),
    "TopicStatsTable": ("admin.TopicStatsTable", "admin.TopicStatsTable"),
    "AclInfo": (None, "body.AclInfo"),
    "UserInfo": (None, "body.UserInfo"),
    "GroupForbidden": (None, "subscription.GroupForbidden"),
}


def java_body(name: str, version: str) -> str | None:
    """The full name of the Java class for one of our body classes."""
    old, new = JAVA_BODIES[name]
    if version.startswith("4."):
        return None if old is None else f"org.apache.rocketmq.common.{old}"
    return None if new is None else f"org.apache.rocketmq.remoting.protocol.{new}"


def java_header(name: str, version: str) -> str | None:
    """The full name of the Java class for one of our header classes."""
    if name not in upstream_headers(version):
        return None
    theirs = {ours: java for java, ours in OUR_NAMES.items()}.get(name, name)
    package = "common.protocol" if version.startswith("4.") else "remoting.protocol"
    module = getattr(headers, name).__module__.rpartition(".")[2]
    folder = "namesrv." if module == "nameserver" and name != "GetTopicsByClusterRequest" else ""
    return f"org.apache.rocketmq.{package}.header.{folder}{theirs}Header"


class JavaError(RefmqError):
    """The Java classes could not read what they were given."""


class JavaCodec:
    """A Java process that reads and writes bytes with the classes of one version; a context manager."""

    def __init__(self, version: str, serialize_type: str = "JSON") -> None:
        path = f"{artifacts.programs(version)}:{artifacts.class_path(artifacts.CLIENTS[version])}"
        self._process = subprocess.Popen(
            [
                "java",
                "-Xmx128m",
                "-XX:+UseSerialGC",
                f"-Drocketmq.serialize.type={serialize_type}",
                "-cp",
                path,
                "Codec",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def ask(self, mode: str, name: str, data: bytes) -> bytes:
        """The bytes that Java writes after it has read ``data``. ``JavaError`` when it cannot read them."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{mode} {name} {data.hex()}\n".encode())
        self._process.stdin.flush()
        ready, _, _ = select.select([self._process.stdout], [], [], ANSWER_TIMEOUT_S)
        if not ready:
            raise RefmqError(f"The Java codec did not answer within {ANSWER_TIMEOUT_S} s.")
        verdict, _, rest = self._process.stdout.readline().decode().rstrip("\n").partition(" ")
        if verdict != "ok":
            raise JavaError(rest or "the Java codec has ended")
        return bytes.fromhex(rest)
