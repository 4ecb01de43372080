"""Access control: the decisions of a real 4.9.7 broker and of ours on the same accounts and requests, and the real
clients and mqadmin with accounts.

What ours decides otherwise on purpose stands in `STRICTER` with its reason; everything else has to be the same, with
the same words up to upstream's stack frame.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from interop.jvm import JavaError, Jvm
from interop.ours import OurBroker, OurNameserver, ask
from interop.processes import wait_until
from interop.rocketmq import Broker, Clients, Nameserver, make_home
from interop.scene import message
from interop.tests.conftest import VERSIONS
from refmq.protocol.acl import Credentials, sign
from refmq.protocol.bodies.codec import encode_body
from refmq.protocol.bodies.heartbeat import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    ProducerData,
    SubscriptionData,
)
from refmq.protocol.bodies.offsets import LockBatchRequestBody
from refmq.protocol.codes import RequestCode as Code
from refmq.protocol.command import RemotingCommand, request
from refmq.protocol.headers.codec import encode_header
from refmq.protocol.headers.pull import PullMessageRequest, PullSysFlag
from refmq.protocol.headers.send import SendMessageRequest, encode_send_header

EXCEPTION = "org.apache.rocketmq.acl.common.AclException: "
SETTLE_S = 60.0

ADMIN = Credentials("administrator", "admin-secret")
ALICE = Credentials("alice-key", "alice-secret")
BOB = Credentials("bob-key", "bob-secret")
LIMITED = Credentials("limited-admin", "limited-secret")

ACCOUNTS = """
accounts:
- accessKey: administrator
  secretKey: admin-secret
  admin: true
- accessKey: alice-key
  secretKey: alice-secret
  defaultTopicPerm: DENY
  defaultGroupPerm: SUB
  topicPerms: [orders=PUB|SUB, read-only=SUB, write-only=PUB, closed=DENY, typo=PUBLISH]
  groupPerms: [alice-group=SUB, closed-group=DENY]
- accessKey: bob-key
  secretKey: bob-secret
- accessKey: octal-key
  secretKey: 012345670
- accessKey: limited-admin
  secretKey: limited-secret
  admin: true
  topicPerms: [orders=SUB]
"""

PATTERNS = {
    "127.0.0.1": True, "127.0.0.*": True, "127.0.*.*": True, "127.*.*.*": True, "127.0.0.{1,2}": True,
    "127.0.0.{2,3}": False, "127.0.0.2-9": False, "127.0.0.0-9": True, "127.0.0.1-1": True, "10.*.*.*": False,
    "*": True, "127.0.0.1,10.1.1.1": True, "127.0.0.11": False, "127.0.0.10-19": False, "12.0.0.*": False,
    "'*.*.*.*'": True,
}  # fmt: skip
"""Patterns, and whether a client on loopback is meant."""

FURTHER = {"127.*.5.6": (True, False)}
"""Patterns that a real broker matches no further than to the first free octet, and what each decides."""

WHITE = "".join(
    f"- accessKey: white-account-{number}\n  secretKey: 12345678\n  whiteRemoteAddress: {_quoted}\n"
    for number, _quoted in enumerate(text if text.startswith("'") else f"'{text}'" for text in (*PATTERNS, *FURTHER))
)


@dataclass(frozen=True)
class Pair:
    """Both brokers, with the same accounts."""

    real: str
    ours: str


@pytest.fixture(scope="module")
def pair(folder: Path, pytestconfig: pytest.Config) -> Iterator[Pair]:
    where = folder / "access"
    settings = {"aclEnable": "true"}
    with Nameserver(where / "real-names") as real_names, OurNameserver(where / "our-names") as our_names:
        theirs = Broker(where / "real", real_names.address, settings=settings)
        make_home(theirs.folder / "home")
        mine = OurBroker(where / "ours", our_names.address, settings=settings)
        mine.folder.mkdir(parents=True)
        for place in (theirs.folder / "home" / "conf", mine.folder):
            (place / "plain_acl.yml").write_text(ACCOUNTS + WHITE)
        with theirs, mine:
            for address in (theirs.address, mine.address):
                for topic in ("orders", "read-only", "write-only", "closed", "typo"):
                    assert ask(address, sign(make_topic(topic), ADMIN)).code == 0
            yield Pair(theirs.address, mine.address)


def make_topic(name: str) -> RemotingCommand:
    fields = {
        "topic": name, "defaultTopic": "TBW102", "readQueueNums": "4", "writeQueueNums": "4", "perm": "6",
        "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
    }  # fmt: skip
    return request(Code.UPDATE_AND_CREATE_TOPIC, fields)


def send(topic: str, code: Code = Code.SEND_MESSAGE_V2, group: str = "producers") -> RemotingCommand:
    header = SendMessageRequest(
        producer_group=group, topic=topic, default_topic="TBW102", default_topic_queue_nums=4, queue_id=0, sys_flag=0,
        born_timestamp=1_700_000_000_000, flag=0, properties="", reconsume_times=0, unit_mode=False, batch=False,
    )  # fmt: skip
    return request(code, encode_send_header(header, code), b"body")


def pull(topic: str, group: str) -> RemotingCommand:
    header = PullMessageRequest(
        consumer_group=group, topic=topic, queue_id=0, queue_offset=0, max_msg_nums=1, commit_offset=0,
        sys_flag=PullSysFlag.SUBSCRIPTION, suspend_timeout_millis=0, subscription="*", sub_version=0,
        expression_type="TAG",
    )  # fmt: skip
    return request(Code.PULL_MESSAGE, encode_header(header))


def heartbeat(group: str, *topics: str) -> RemotingCommand:
    consumer = ConsumerData(
        group_name=group,
        consume_type=ConsumeType.CONSUME_PASSIVELY,
        message_model=MessageModel.CLUSTERING,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
        subscription_data_set=tuple(SubscriptionData(topic=topic, sub_string="*") for topic in topics),
    )
    data = HeartbeatData(
        client_id="c", producer_data_set=(ProducerData(group_name="p"),), consumer_data_set=(consumer,)
    )
    return request(Code.HEART_BEAT, {"any": "field"}, encode_body(data))


def lock(group: str) -> RemotingCommand:
    return request(Code.LOCK_BATCH_MQ, {}, encode_body(LockBatchRequestBody(consumer_group=group, client_id="c")))


TOPICS = ("orders", "read-only", "write-only", "closed", "typo", "unlisted", "orders2", "RMQ_SYS_TRACE_TOPIC")
GROUPS = ("alice-group", "closed-group", "unlisted")
WHO = {"admin": ADMIN, "alice": ALICE, "bob": BOB, "limited": LIMITED}

QUERY = {"key": "k", "maxNum": "1", "beginTimestamp": "0", "endTimestamp": "9"}
COMMIT = {"queueId": "0", "commitOffset": "0"}
NOWHERE = {"offset": "999999999", "delayLevel": "0"}

CHECKED: dict[str, RemotingCommand] = {
    **{f"send {topic}": send(topic) for topic in TOPICS},
    **{f"long send {topic}": send(topic, Code.SEND_MESSAGE) for topic in TOPICS},
    **{f"pull {topic} {group}": pull(topic, group) for topic in TOPICS for group in GROUPS},
    **{f"query {topic}": request(12, {"topic": topic, **QUERY}) for topic in TOPICS},
    **{f"heartbeat {group} {topic}": heartbeat(group, "orders", topic) for topic in TOPICS for group in GROUPS},
    **{f"leave {group}": request(35, {"clientID": "c", "consumerGroup": group}) for group in GROUPS},
    "leave as a producer": request(35, {"clientID": "c", "producerGroup": "p"}),
    **{f"members {group}": request(38, {"consumerGroup": group}) for group in GROUPS},
    **{f"commit {topic} {group}": request(15, {"consumerGroup": group, "topic": topic, **COMMIT})
       for topic in TOPICS for group in GROUPS},
    **{f"send back {group}": request(36, {"group": group, **NOWHERE}) for group in GROUPS},
    "create a topic": make_topic("made"),
    "change settings": request(25, {"any": "field"}, b"regionId=here"),
    "delete a topic": request(215, {"topic": "none"}),
    "change a group": request(200, {"any": "field"}),
    "delete a group": request(207, {"groupName": "none"}),
}  # fmt: skip
"""Requests that upstream asks permissions or an admin for: the decision has to be the same."""

ANYBODY = {
    "batch": send("unlisted", Code.SEND_BATCH_MESSAGE),
    "reply": send("unlisted", Code.SEND_REPLY_MESSAGE_V2),
    "offset": request(14, {"consumerGroup": "closed-group", "topic": "closed", "queueId": "0"}),
    "lock": lock("closed-group"),
    "max offset": request(30, {"topic": "closed", "queueId": "0"}),
    "settings": request(26, {"any": "field"}),
    "runtime": request(28, {"any": "field"}),
    "all offsets": request(43, {"any": "field"}),
    "all topics": request(21, {"any": "field"}),
    "make oneself an admin": request(50, {"accessKey": "alice-key", "secretKey": "alice-secret", "admin": "true"}),
    "delete an account": request(51, {"accessKey": "white-account-0"}),
    "white list": request(53, {"globalWhiteAddrs": "10.1.2.3"}),
    "versions": request(52, {"any": "field"}),
}
STRICTER = {
    **dict.fromkeys(("batch", "reply"), "a batch and an answer are sends, and need PUB"),
    **dict.fromkeys(("offset", "lock", "max offset"), "what a consumer does needs its topic or its group"),
    **dict.fromkeys(
        ("settings", "runtime", "all offsets", "all topics", "versions"), "tables and settings are for admins"
    ),
    **dict.fromkeys(("make oneself an admin", "delete an account", "white list"), "B108: accounts are for admins"),
}
"""Requests that upstream lets every account make, and why ours does not."""


def verdict(address: str, command: RemotingCommand) -> str:
    """`allowed`, or why not, without the stack frame that upstream adds."""
    answer = ask(address, command)
    remark = answer.remark or ""
    if not remark.startswith(EXCEPTION):
        return "allowed"
    assert answer.code == 1
    return (
        remark.removeprefix(EXCEPTION).partition(", ")[0]
        if ", org.apache" not in remark
        else remark.removeprefix(EXCEPTION).rpartition(", org.apache")[0]
    )


def words(name: str, text: str) -> str:
    """Upstream keeps what a request needs in a hash map: which of several that are missing it names is a matter of
    their hashes. And it ends some sentences otherwise."""
    if name.partition(" ")[0] in ("pull", "commit", "heartbeat"):
        return text.partition(" for ")[0]
    return text.partition(", but accessKey")[0]


@pytest.mark.parametrize("who", WHO)
def test_what_upstream_checks_is_decided_alike(pair: Pair, who: str) -> None:
    different = {}
    for name, command in CHECKED.items():
        signed = sign(command, WHO[who])
        decisions = [words(name, verdict(address, signed)) for address in (pair.real, pair.ours)]
        if decisions[0] != decisions[1]:
            different[name] = decisions
    assert different == {}


def test_who_does_not_sign_or_signs_wrongly_is_refused_alike(pair: Pair) -> None:
    right = sign(send("orders"), ALICE)
    attacks = {
        "unsigned": send("orders"),
        "no fields": request(28),
        "unknown": sign(send("orders"), Credentials("nobody-knows", "12345678")),
        "wrong secret": sign(send("orders"), Credentials("alice-key", "bob-secret")),
        "another body": replace(right, body=b"another"),
        "another topic": replace(right, ext_fields={**right.fields, "b": "write-only"}),
        "one more field": replace(right, ext_fields={**right.fields, "z": "1"}),
        "empty signature": replace(right, ext_fields={**right.fields, "Signature": ""}),
    }
    found = {name: [verdict(each, attack) for each in (pair.real, pair.ours)] for name, attack in attacks.items()}
    assert {name: both for name, both in found.items() if both[0] != both[1] or both[0] == "allowed"} == {}


def test_addresses_are_matched_alike(pair: Pair) -> None:
    found = {}
    for number, (pattern, is_meant) in enumerate(PATTERNS.items()):
        command = request(Code.GET_BROKER_RUNTIME_INFO, {"AccessKey": f"white-account-{number}"})
        decisions = [verdict(address, command) == "allowed" for address in (pair.real, pair.ours)]
        if decisions != [is_meant, is_meant]:
            found[pattern] = decisions
    assert found == {}
    for number, decided in enumerate(FURTHER.values(), start=len(PATTERNS)):
        command = request(Code.GET_BROKER_RUNTIME_INFO, {"AccessKey": f"white-account-{number}"})
        assert tuple(verdict(address, command) == "allowed" for address in (pair.real, pair.ours)) == decided


def test_a_secret_of_digits_is_what_is_written(pair: Pair) -> None:
    """YAML 1.1 reads 012345670 as an octal number, and so does upstream."""
    for secret, decided in (("012345670", (False, True)), ("2739128", (True, False))):
        command = sign(request(Code.GET_MAX_OFFSET, {"topic": "t", "queueId": "0"}), Credentials("octal-key", secret))
        denied = "Check signature failed for accessKey=octal-key"
        assert tuple(verdict(address, command) != denied for address in (pair.real, pair.ours)) == decided


@pytest.mark.parametrize("name", ANYBODY)
def test_what_ours_forbids_besides_has_a_reason(pair: Pair, name: str) -> None:
    assert STRICTER[name]
    command = sign(ANYBODY[name], BOB)
    assert verdict(pair.ours, command) != "allowed"
    if name not in ("make oneself an admin", "delete an account", "white list"):  # upstream would do it
        assert verdict(pair.real, command) == "allowed"


# --- clients and mqadmin with accounts --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def guarded(folder: Path) -> Iterator[tuple[OurNameserver, OurBroker]]:
    """A nameserver, and a broker that demands accounts."""
    names, broker_folder = OurNameserver(folder / "guarded-names"), folder / "guarded"
    with names:
        broker = OurBroker(broker_folder, names.address, settings={"aclEnable": "true", "traceTopicEnable": "true"})
        broker.folder.mkdir(parents=True)
        (broker.folder / "plain_acl.yml").write_text(ACCOUNTS)
        with broker:
            for topic in ("orders", "closed"):
                assert ask(broker.address, sign(make_topic(topic), ADMIN)).code == 0
            yield names, broker


def ends(address: str, topic: str) -> set[str]:
    """The ends of the four queues of a topic."""
    asked = (request(Code.GET_MAX_OFFSET, {"topic": topic, "queueId": str(queue)}) for queue in range(4))
    return {ask(address, sign(command, ADMIN)).fields["offset"] for command in asked}


def admin_clients(clients: dict[str, Clients], folder: Path, who: Credentials, name: str) -> Clients:
    """mqadmin of 4.9.8 with a `tools.yml`."""
    mine = Clients("4.9.8", folder / f"mqadmin-{name}")
    make_home(mine.folder / "home")
    tools = mine.folder / "home" / "conf" / "tools.yml"
    tools.write_text(f"accessKey: {who.access_key}\nsecretKey: {who.secret_key}\n")
    return mine


@pytest.mark.parametrize("version", VERSIONS)
def test_java_clients_with_an_account_send_and_consume(
    guarded: tuple[OurNameserver, OurBroker], jvms: dict[str, Jvm], version: str
) -> None:
    names, broker = guarded
    jvm = jvms[version]
    alice = {"accessKey": ALICE.access_key, "secretKey": ALICE.secret_key}
    options = {"namesrvAddr": names.address, "instanceName": f"guarded-{version}"}
    producer = jvm.new("DefaultMQProducer", ["producers", alice], {**options, "sendMsgTimeout": 10_000}).start()
    average = "org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely"
    group = f"group-{version.replace('.', '-')}"
    consumer = jvm.new(
        "DefaultMQPushConsumer", [group, alice, average], {**options, "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET"}
    )
    try:
        for number in range(8):
            producer.call("send", message("orders", f"{version}-{number}", keys=f"{version}-{number}"))
        producer.call("send", [message("orders", f"{version}-batch-{number}") for number in range(3)])
        with pytest.raises(JavaError, match="Send"):
            producer.call("send", message("closed", "no"))
        assert ends(broker.address, "closed") == {"0"}
        consumer.call("subscribe", "orders", "*")
        jvm.run("listen", name=consumer.name, kind="concurrent", policy={})
        consumer.start()
        wanted = {f"{version}-{number}" for number in range(8)} | {f"{version}-batch-{number}" for number in range(3)}

        def bodies() -> set[str]:
            return {e.value["body"] for e in jvm.events if e.name == consumer.name and e.event == "message"}

        wait_until(lambda: wanted <= bodies(), "all messages", SETTLE_S)
    finally:
        producer.close()
        consumer.close()


def test_mqadmin_manages_accounts_and_only_an_admin_does(
    guarded: tuple[OurNameserver, OurBroker], clients: dict[str, Clients], folder: Path
) -> None:
    names, broker = guarded
    admin = admin_clients(clients, folder, ADMIN, "admin")
    alice = admin_clients(clients, folder, ALICE, "alice")
    where = ("-n", names.address, "-b", broker.address)
    carol = Credentials("carol-key", "carol-secret")
    make = (
        "updateAclConfig",
        *where,
        "-a",
        carol.access_key,
        "-s",
        carol.secret_key,
        "-t",
        "orders=PUB|SUB",
        "-g",
        "g=SUB",
    )
    assert "Need admin permission" in alice.mqadmin(*make)
    assert "No acl config" in (ask(broker.address, sign(send("orders"), carol)).remark or "")
    assert "success" in admin.mqadmin(*make)
    assert ask(broker.address, sign(send("orders"), carol)).code == 0
    versions = admin.mqadmin("clusterAclConfigVersion", *where)
    assert "plain_acl.yml" in versions
    assert "success" in admin.mqadmin("updateGlobalWhiteAddr", *where, "-g", "10.10.154.1,10.10.154.2")
    text = (broker.folder / "plain_acl.yml").read_text()
    assert "10.10.154.2" in text
    assert "carol-key" in text
    assert "success" in admin.mqadmin("deleteAclConfig", *where, "-a", carol.access_key)
    assert "No acl config" in (ask(broker.address, sign(send("orders"), carol)).remark or "")
    assert "success" in admin.mqadmin("updateTopic", *where, "-t", "made-by-mqadmin")
    assert "carol-secret" not in versions + admin.mqadmin("getBrokerConfig", *where)


def test_mqadmin_finds_messages_by_key_with_an_account(
    guarded: tuple[OurNameserver, OurBroker], clients: dict[str, Clients], folder: Path
) -> None:
    """A 4.9.8 broker finds nothing then: it leaves out a field of the content that its own clients sign."""
    names, broker = guarded
    header = SendMessageRequest(
        producer_group="p", topic="orders", default_topic="TBW102", default_topic_queue_nums=4, queue_id=0, sys_flag=0,
        born_timestamp=1_700_000_000_000, flag=0, batch=False,
        properties="KEYS\x01the-key\x02UNIQ_KEY\x017F0000010001\x02",
    )  # fmt: skip
    command = request(Code.SEND_MESSAGE_V2, encode_send_header(header), b"found")
    assert ask(broker.address, sign(command, ALICE)).code == 0
    alice = admin_clients(clients, folder, ALICE, "queries")
    found = alice.mqadmin("queryMsgByKey", "-n", names.address, "-t", "orders", "-k", "the-key")
    assert "7F0000010001" in found, found
