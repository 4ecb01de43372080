"""Upstream's own integration tests, run against servers that are already there.

The jar `rocketmq-test` has them, compiled. They start two brokers and a nameserver inside their JVM, by the one class
`IntegrationTestBase`; ours of the same name comes first on the class path and names running servers instead
(`interop/upstream`). A class of tests is one JVM, and each of its cases a line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from zipfile import ZipFile

from interop.artifacts import UPSTREAM_TESTS, class_path, upstream_tests
from interop.processes import Child
from interop.rocketmq import java, make_home
from interop.scene import Cluster

PACKAGE: Final = "org.apache.rocketmq.test."
CLASS_TIMEOUT_S: Final = 600.0
"""For one class: the slowest take minutes, because they wait for rebalances."""

CLASSES: Final = (
    "client.consumer.balance.NormalMsgDynamicBalanceIT",
    "client.consumer.balance.NormalMsgStaticBalanceIT",
    "client.consumer.broadcast.normal.BroadCastNormalMsgNotRecvIT",
    "client.consumer.broadcast.normal.BroadCastNormalMsgRecvCrashIT",
    "client.consumer.broadcast.normal.BroadCastNormalMsgRecvFailIT",
    "client.consumer.broadcast.normal.BroadCastNormalMsgRecvStartLaterIT",
    "client.consumer.broadcast.normal.BroadCastNormalMsgTwoDiffGroupRecvIT",
    "client.consumer.broadcast.normal.NormalMsgTwoSameGroupConsumerIT",
    "client.consumer.broadcast.tag.BroadCastTwoConsumerFilterIT",
    "client.consumer.broadcast.tag.BroadCastTwoConsumerSubDiffTagIT",
    "client.consumer.broadcast.tag.BroadCastTwoConsumerSubTagIT",
    "client.consumer.cluster.DynamicAddAndCrashIT",
    "client.consumer.cluster.DynamicAddConsumerIT",
    "client.consumer.cluster.DynamicCrashConsumerIT",
    "client.consumer.filter.SqlFilterIT",
    "client.consumer.tag.MulTagSubIT",
    "client.consumer.tag.TagMessageWith1ConsumerIT",
    "client.consumer.tag.TagMessageWithMulConsumerIT",
    "client.consumer.tag.TagMessageWithSameGroupConsumerIT",
    "client.consumer.topic.MulConsumerMulTopicIT",
    "client.consumer.topic.OneConsumerMulTopicIT",
    "client.producer.async.AsyncSendExceptionIT",
    "client.producer.async.AsyncSendWithMessageQueueIT",
    "client.producer.async.AsyncSendWithMessageQueueSelectorIT",
    "client.producer.async.AsyncSendWithOnlySendCallBackIT",
    "client.producer.batch.BatchSendIT",
    "client.producer.exception.msg.ChinaPropIT",
    "client.producer.exception.msg.MessageExceptionIT",
    "client.producer.exception.msg.MessageUserPropIT",
    "client.producer.exception.producer.ProducerGroupAndInstanceNameValidityIT",
    "client.producer.oneway.OneWaySendExceptionIT",
    "client.producer.oneway.OneWaySendIT",
    "client.producer.oneway.OneWaySendWithMQIT",
    "client.producer.oneway.OneWaySendWithSelectorIT",
    "client.producer.order.OrderMsgDynamicRebalanceIT",
    "client.producer.order.OrderMsgIT",
    "client.producer.order.OrderMsgRebalanceIT",
    "client.producer.order.OrderMsgWithTagIT",
    "client.producer.querymsg.QueryMsgByIdExceptionIT",
    "client.producer.querymsg.QueryMsgByIdIT",
    "client.producer.querymsg.QueryMsgByKeyIT",
    "client.producer.transaction.TransactionalMsgIT",
    "delay.NormalMsgDelayIT",
    "smoke.NormalMessageSendAndRecvIT",
    "tls.TLS_IT",
    "tls.TLS_Mix2_IT",
    "tls.TLS_Mix_IT",
)
LEFT_OUT: Final = {
    "base.dledger.DLedgerProduceAndConsumeIT": "is about Raft logs, which refmq does not have",
    "client.consumer.broadcast.BaseBroadCastIT": "has no cases: others inherit from it",
    "client.consumer.broadcast.order.OrderMsgBroadCastIT": "is marked as ignored by upstream",
}

CASE: Final = re.compile(r"^case (\S+) (passed|failed|ignored) ?(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    """How one case of upstream's ended."""

    name: str
    result: str
    why: str


def published_classes() -> set[str]:
    """The classes of integration tests in upstream's jar, without the package that they share."""
    (jar,) = Path(class_path(UPSTREAM_TESTS).removesuffix("/*")).glob("rocketmq-test-*-tests.jar")
    with ZipFile(jar) as content:
        names = (name.removesuffix(".class").replace("/", ".") for name in content.namelist() if "$" not in name)
        return {name.removeprefix(PACKAGE) for name in names if name.endswith("IT")}


def run_class(name: str, cluster: Cluster, folder: Path) -> list[Case]:
    """Runs one class of tests to its end."""
    jvm = (
        "-Xmx300m",
        f"-Duser.home={folder}",
        f"-Drocketmq.client.logRoot={folder}/logs",
        f"-Drefmq.nameserver.port={cluster.nameserver.port}",
        f"-Drefmq.brokers={','.join(cluster.brokers)}",
    )
    log = folder / f"{name}.out"
    command = java(jvm, upstream_tests(), "RunUpstream", PACKAGE + name)
    child = Child(command, log, make_home(folder / "home"), cwd=folder)  # the tests leave a log where they run
    code = child.wait(CLASS_TIMEOUT_S)
    cases = [Case(*found) for found in CASE.findall(child.output())]
    assert (code == 0) == (not any(case.result == "failed" for case in cases)), child.output()[-2000:]
    return cases
