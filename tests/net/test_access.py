"""Attacks on a broker that listens, with access control on, on each engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from refmq.acl.rules import BROKER_RULES, Admin
from refmq.errors import RequestTimedOut
from refmq.model.broker_config import BrokerConfig
from refmq.net.acl_files import AclFiles
from refmq.net.broker_node import BrokerNode
from refmq.net.client import Client
from refmq.net.connection import Connection
from refmq.net.limits import Limits
from refmq.net.tls import ClientTls, ServerTls, TlsMode, client_context, server_context
from refmq.protocol.acl import Credentials, sign
from refmq.protocol.bodies.codec import encode_body
from refmq.protocol.bodies.heartbeat import HeartbeatData, ProducerData
from refmq.protocol.codes import RequestCode as Code
from refmq.protocol.codes import ResponseCode
from refmq.protocol.command import RemotingCommand, oneway, request
from refmq.protocol.headers.admin import UpdateAclConfigRequest
from refmq.protocol.headers.codec import encode_header
from refmq.protocol.headers.messages import ConsumerSendMsgBackRequest, EndTransactionRequest, ViewMessageRequest
from refmq.protocol.headers.pull import PullSysFlag
from refmq.protocol.record import parse_message_id
from refmq.store import StoreConfig
from refmq.store.config import FlushMode
from tests.acl.files import ADMIN, ALICE, BOB, TEXT
from tests.net.broker_requests import (
    TIMEOUT_S,
    commit_request,
    create_topic_request,
    pull_request,
    send_request,
)
from tests.net.broker_support import SMALL_STORE, serving_broker
from tests.net.support import TLS_FOLDER, run

pytestmark = pytest.mark.usefixtures("each_engine")

GUARDED = BrokerConfig(listen_port=0, acl_enable=True)
SECRETS = [each.secret_key for each in (ADMIN, ALICE, BOB)]
OTHER = Credentials("other-account", "other-secret")


@asynccontextmanager
async def guarded(
    folder: Path, text: str = TEXT, *, config: BrokerConfig = GUARDED, store: StoreConfig = SMALL_STORE,
    tls: ServerTls | None = None,
) -> AsyncIterator[tuple[BrokerNode, str, AclFiles]]:  # fmt: skip
    """A broker with these accounts, and a topic `orders` with one message in it."""
    (folder / "plain_acl.yml").write_text(text)
    files = AclFiles(folder)
    files.load()
    async with serving_broker(config, store, accounts=files, tls=tls) as (node, address):
        yield node, address, files


async def ask(address: str, command: RemotingCommand, client: Client | None = None) -> RemotingCommand:
    own = client or Client(limits=Limits(connect_timeout_s=20))
    try:
        return await own.invoke(address, command, TIMEOUT_S)
    finally:
        if client is None:
            await own.close(0.5)


async def prepared(address: str) -> None:
    created = await ask(address, sign(create_topic_request("orders", 4), ADMIN))
    assert created.code == ResponseCode.SUCCESS, created.remark
    sent = await ask(address, sign(send_request("orders", b"first"), ALICE))
    assert sent.code == ResponseCode.SUCCESS, sent.remark


def refused(answer: RemotingCommand, why: str) -> None:
    assert answer.code == ResponseCode.SYSTEM_ERROR, answer
    assert why in (answer.remark or ""), answer.remark
    assert (answer.remark or "").startswith("org.apache.rocketmq.acl.common.AclException: ")
    assert answer.body == b""


def end_of(node: BrokerNode, topic: str) -> int:
    return sum(node.engine.store.max_offset(topic, queue) for queue in range(4))


HOT = {
    "send": send_request("orders", b"x"),
    "batch": replace(send_request("orders", b"x", batch=False), code=Code.SEND_BATCH_MESSAGE),
    "pull": pull_request("orders"),
    "lite pull": replace(pull_request("orders"), code=Code.LITE_PULL_MESSAGE),
    "commit": commit_request("orders", 0, 1),
}


@pytest.mark.parametrize("command", HOT.values(), ids=list(HOT))
def test_the_hot_path_is_closed_to_strangers(tmp_path: Path, command: RemotingCommand) -> None:
    async def body() -> None:
        async with guarded(tmp_path) as (node, address, _):
            await prepared(address)
            before = end_of(node, "orders")
            refused(await ask(address, command), "No accessKey is configured")
            refused(
                await ask(address, sign(command, Credentials("alice-key", "guessed-one"))), "Check signature failed"
            )
            refused(await ask(address, sign(command, OTHER)), "No acl config for other-account")
            refused(await ask(address, sign(command, BOB)), "No default permission for topic:orders")
            assert end_of(node, "orders") == before
            assert node.engine.offsets.get("orders", "g", 0) is None
            assert (await ask(address, sign(command, ALICE))).code in (0, 19)

    run(body())


MATTER_MOST = (25, 26, 50, 51, 52, 53, 215)


@pytest.mark.parametrize(
    "code", [code for code in Code if code % 7 == 0 or code in MATTER_MOST], ids=lambda code: code.name
)
def test_every_code_is_closed_to_strangers_on_both_ports(tmp_path: Path, code: Code) -> None:
    """One in seven, and what matters most; `tests/acl/test_check.py` has all of them."""

    async def body() -> None:
        config = replace(GUARDED, listen_port=free_port_pair())
        async with guarded(tmp_path, config=config) as (_, address, _):
            host, _, port = address.rpartition(":")
            for each in (address, f"{host}:{int(port) - 2}"):
                refused(await ask(each, request(code)), "No accessKey is configured")

    run(body())


def free_port_pair() -> int:
    import socket

    while True:
        with socket.socket() as main, socket.socket() as vip:
            main.bind(("127.0.0.1", 0))
            port = int(main.getsockname()[1])
            try:
                vip.bind(("127.0.0.1", port - 2))
            except OSError:
                continue
            return port


def test_a_request_cannot_be_replayed_with_another_body_or_another_topic(tmp_path: Path) -> None:
    async def body() -> None:
        async with guarded(tmp_path) as (node, address, _):
            await prepared(address)
            heard = sign(send_request("orders", b"ten euros"), ALICE)
            before = end_of(node, "orders")
            for changed in (
                replace(heard, body=b"99 euros"),
                replace(heard, ext_fields={**heard.fields, "b": "write-only"}),
                replace(heard, ext_fields={**heard.fields, "e": "3"}),
                replace(heard, ext_fields={**heard.fields, "AccessKey": ADMIN.access_key}),
            ):
                refused(await ask(address, changed), "Check signature failed")
            assert end_of(node, "orders") == before

    run(body())


def test_one_way_requests_are_checked_as_well(tmp_path: Path) -> None:
    async def body() -> None:
        async with guarded(tmp_path) as (node, address, _):
            await prepared(address)
            before, client = end_of(node, "orders"), Client()
            try:
                for command in (send_request("orders", b"x"), commit_request("orders", 0, 1)):
                    for attack in (command, sign(command, BOB)):
                        await client.oneway(address, oneway(attack.code, attack.fields, attack.body), TIMEOUT_S)
                delete = oneway(Code.DELETE_TOPIC_IN_BROKER, sign(request(215, {"topic": "orders"}), ALICE).fields)
                await client.oneway(address, delete, TIMEOUT_S)
                refused(await ask(address, request(Code.HEART_BEAT), client), "No accessKey")  # they are served by now
                assert end_of(node, "orders") == before
                assert node.engine.offsets.get("orders", "g", 0) is None
                assert "orders" in node.broker.state.topics.topics
                allowed = sign(send_request("orders", b"x"), ALICE)
                await client.oneway(address, oneway(allowed.code, allowed.fields, allowed.body), TIMEOUT_S)
                refused(await ask(address, request(Code.HEART_BEAT), client), "No accessKey")
                assert end_of(node, "orders") == before + 1
            finally:
                await client.close(0.5)

    run(body())


def test_connections_over_tls_are_checked_as_well(tmp_path: Path) -> None:
    async def body() -> None:
        context = server_context(TLS_FOLDER / "certificate.pem", TLS_FOLDER / "key.pem")
        async with guarded(tmp_path, tls=ServerTls(TlsMode.PERMISSIVE, context)) as (node, address, _):
            await prepared(address)
            client = Client(tls=ClientTls(client_context()))
            try:
                before = end_of(node, "orders")
                refused(await ask(address, send_request("orders", b"x"), client), "No accessKey")
                refused(await ask(address, pull_request("orders"), client), "No accessKey")
                refused(await ask(address, request(Code.GET_BROKER_CONFIG), client), "No accessKey")
                refused(await ask(address, sign(send_request("orders", b"x"), BOB), client), "No default permission")
                assert end_of(node, "orders") == before
            finally:
                await client.close(0.5)

    run(body())


def test_only_admins_change_accounts_configuration_and_topics(tmp_path: Path) -> None:
    async def body() -> None:
        async with guarded(tmp_path) as (node, address, files):
            await prepared(address)
            text = files.plain_path.read_text()
            promote = UpdateAclConfigRequest(access_key="alice-key", secret_key="alice-secret", admin=True)
            attacks = [
                request(Code.UPDATE_AND_CREATE_ACL_CONFIG, encode_header(promote)),
                request(Code.DELETE_ACL_CONFIG, {"accessKey": "administrator"}),
                request(Code.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG, {"globalWhiteAddrs": "*"}),
                request(Code.UPDATE_BROKER_CONFIG, body=b"brokerPermission=0"),
                request(Code.DELETE_TOPIC_IN_BROKER, {"topic": "orders"}),
                create_topic_request("more", 4),
            ]
            for attack in attacks:
                refused(await ask(address, sign(attack, ALICE)), "Need admin permission")
            for code in [each for each, rule in BROKER_RULES.items() if isinstance(rule, Admin)]:
                refused(await ask(address, sign(request(code), ALICE)), "Need admin permission")
            for setting in (b"aclEnable=false", b"useTLS=true"):  # not even an admin opens it over the wire
                answer = await ask(address, sign(request(Code.UPDATE_BROKER_CONFIG, body=setting), ADMIN))
                assert answer.code == ResponseCode.SYSTEM_ERROR
            assert node.broker.config.acl_enable
            assert files.plain_path.read_text() == text
            assert node.broker.config.broker_permission == 6
            assert "orders" in node.broker.state.topics.topics
            assert "more" not in node.broker.state.topics.topics

    run(body())


def test_no_request_tells_a_secret(tmp_path: Path) -> None:
    """B107: any account could read all of them."""

    async def body() -> None:
        async with guarded(tmp_path) as (_, address, _):
            await prepared(address)
            client = Client()
            try:
                for code in Code:
                    command = sign(request(code, {"topic": "orders", "accessKey": "alice-key"}), ADMIN)
                    try:
                        answer = await client.invoke(address, command, 1.0)
                    except RequestTimedOut:
                        continue  # some requests have no answer
                    said = f"{answer.ext_fields}{answer.remark}".encode() + answer.body
                    assert not [secret for secret in SECRETS if secret.encode() in said], code.name
                    if code == Code.DELETE_ACL_CONFIG:
                        assert answer.code == ResponseCode.SUCCESS
            finally:
                await client.close(0.5)

    run(body())


def test_a_message_cannot_be_had_by_its_offset(tmp_path: Path) -> None:
    """Upstream gives any message to any account that knows, or guesses, where it is."""

    async def body() -> None:
        async with guarded(tmp_path) as (node, address, _):
            await prepared(address)
            view = request(Code.VIEW_MESSAGE_BY_ID, encode_header(ViewMessageRequest(offset=0)))
            assert b"first" in (await ask(address, sign(view, ALICE))).body
            refused(await ask(address, sign(view, BOB)), "No default permission for topic:orders")
            text = TEXT.replace("- accessKey: bob-key", "- accessKey: bob-key\n  defaultGroupPerm: SUB")
            (tmp_path / "plain_acl.yml").write_text(text)
            files = node.broker.account_files
            assert isinstance(files, AclFiles)
            await files.look_again()
            header = ConsumerSendMsgBackRequest(offset=0, group="bobs-group", delay_level=0)
            back = sign(request(Code.CONSUMER_SEND_MSG_BACK, encode_header(header)), BOB)
            refused(await ask(address, back), "No default permission for topic:orders")

    run(body())


def half_request(topic: str) -> RemotingCommand:
    properties = {"TRAN_MSG": "true", "PGROUP": "producers", "UNIQ_KEY": "k1"}
    return send_request(topic, b"half of a secret", properties=properties, sys_flag=4)


def end_request(sent: RemotingCommand, decision: int = 8) -> RemotingCommand:
    _, physical = parse_message_id(sent.fields["msgId"])
    header = EndTransactionRequest(
        producer_group="producers", tran_state_table_offset=int(sent.fields["queueOffset"]),
        commit_log_offset=physical, commit_or_rollback=decision, msg_id="k1",
    )  # fmt: skip
    return request(Code.END_TRANSACTION, encode_header(header))


@pytest.mark.parametrize("decision", [8, 12])
def test_a_transaction_is_ended_by_who_may_send_to_its_topic(tmp_path: Path, decision: int) -> None:
    async def body() -> None:
        async with guarded(tmp_path) as (node, address, _):
            await prepared(address)
            before = end_of(node, "orders")
            sent = await ask(address, sign(half_request("orders"), ALICE))
            assert sent.code == 0
            refused(
                await ask(address, sign(end_request(sent, decision), BOB)), "No default permission for topic:orders"
            )
            refused(await ask(address, end_request(sent, decision)), "No accessKey")
            assert end_of(node, "orders") == before
            assert (await ask(address, sign(end_request(sent, decision), ALICE))).code == 0
            assert end_of(node, "orders") == before + (decision == 8)

    run(body())


def test_half_messages_are_shown_to_nobody_who_may_not_send_to_their_topic(tmp_path: Path) -> None:
    """A check-back carries the message, and anybody may say that he is in the group of its producers."""

    async def body() -> None:
        seen: dict[str, list[RemotingCommand]] = {"alice": [], "bob": []}

        def listener(name: str) -> Client:
            def take(connection: Connection, command: RemotingCommand) -> None:
                seen[name].append(command)

            return Client(take)

        config = replace(GUARDED, transaction_check_interval=50, transaction_time_out=1, transaction_check_max=1_000)
        async with guarded(tmp_path, config=config) as (_, address, _):
            await prepared(address)
            data = HeartbeatData(client_id="c", producer_data_set=(ProducerData(group_name="producers"),))
            beat = request(Code.HEART_BEAT, body=encode_body(data))
            bob, alice = listener("bob"), listener("alice")
            try:
                assert (await ask(address, sign(beat, BOB), bob)).code == 0
                assert (await ask(address, sign(half_request("orders"), ALICE))).code == 0
                await asyncio.sleep(0.5)
                assert (await ask(address, sign(beat, ALICE), alice)).code == 0
                while not seen["alice"]:
                    await asyncio.sleep(0.02)
                assert {command.code for command in seen["alice"]} == {Code.CHECK_TRANSACTION_STATE}
                assert b"half of a secret" in seen["alice"][0].body
                assert seen["bob"] == []
            finally:
                await bob.close(0.5)
                await alice.close(0.5)

    run(body())


@pytest.mark.parametrize("flush", list(FlushMode))
def test_who_may_do_it_is_served_as_ever(tmp_path: Path, flush: FlushMode) -> None:
    async def body() -> None:
        store = replace(SMALL_STORE, flush_mode=flush)
        patient = replace(GUARDED, wait_time_mills_in_send_queue=60_000)  # a busy machine is slow
        async with guarded(tmp_path, store=store, config=patient) as (_, address, _):
            await prepared(address)
            client = Client()
            try:
                sends = [ask(address, sign(send_request("orders", b"%d" % at), ALICE), client) for at in range(200)]
                answers = await asyncio.gather(*sends)
                assert {answer.code for answer in answers} == {0}
                assert len({answer.fields["queueOffset"] for answer in answers}) == 200
                waits = pull_request(
                    "orders", offset=201, sys_flag=PullSysFlag.SUBSCRIPTION | PullSysFlag.SUSPEND,
                    suspend_timeout_millis=20_000,
                )  # fmt: skip
                waiting = asyncio.create_task(ask(address, sign(waits, ALICE), client))
                await asyncio.sleep(0.1)
                assert not waiting.done()
                assert (await ask(address, sign(send_request("orders", b"late"), ALICE))).code == 0
                assert b"late" in (await waiting).body
            finally:
                await client.close(0.5)

    run(body())


def test_an_account_that_is_gone_gets_nothing_more_not_even_what_it_waits_for(tmp_path: Path) -> None:
    async def body() -> None:
        async with guarded(tmp_path) as (_, address, _):
            await prepared(address)
            client = Client()
            try:
                waits = pull_request(
                    "orders", offset=1, sys_flag=PullSysFlag.SUBSCRIPTION | PullSysFlag.SUSPEND,
                    suspend_timeout_millis=20_000,
                )  # fmt: skip
                waiting = asyncio.create_task(ask(address, sign(waits, ALICE), client))
                await asyncio.sleep(0.1)
                gone = sign(request(Code.DELETE_ACL_CONFIG, {"accessKey": "alice-key"}), ADMIN)
                assert (await ask(address, gone)).code == 0
                refused(
                    await ask(address, sign(send_request("orders", b"x"), ALICE), client), "No acl config for alice-key"
                )
                assert (await ask(address, sign(send_request("orders", b"secret"), ADMIN))).code == 0
                refused(await waiting, "No acl config for alice-key")
            finally:
                await client.close(0.5)

    run(body())


def test_accounts_are_changed_over_the_wire_at_once(tmp_path: Path) -> None:
    async def body() -> None:
        async with guarded(tmp_path) as (_, address, files):
            await prepared(address)
            header = UpdateAclConfigRequest(
                access_key=OTHER.access_key, secret_key=OTHER.secret_key, topic_perms="orders=PUB"
            )
            put = sign(request(Code.UPDATE_AND_CREATE_ACL_CONFIG, encode_header(header)), ADMIN)
            refused(await ask(address, sign(send_request("orders", b"x"), OTHER)), "No acl config")
            assert (await ask(address, put)).code == 0
            assert (await ask(address, sign(send_request("orders", b"x"), OTHER))).code == 0
            told = await ask(address, sign(request(Code.GET_BROKER_CLUSTER_ACL_INFO), ADMIN))
            assert told.code == 0
            assert '"counter":1' in told.fields["version"]
            assert str(files.plain_path) in told.fields["allAclFileVersion"]
            wrong = sign(request(Code.DELETE_ACL_CONFIG, {"accessKey": "nobody"}), ADMIN)
            answer = await ask(address, wrong)
            assert answer.code == ResponseCode.DELETE_ACL_CONFIG_FAILED
            assert "The accesskey[nobody] corresponding" in (answer.remark or "")
            short = UpdateAclConfigRequest(access_key=OTHER.access_key, secret_key="tiny")
            answer = await ask(address, sign(request(Code.UPDATE_AND_CREATE_ACL_CONFIG, encode_header(short)), ADMIN))
            assert answer.code == ResponseCode.UPDATE_AND_CREATE_ACL_CONFIG_FAILED
            assert "tiny" not in (answer.remark or "")
            elsewhere = {"globalWhiteAddrs": "10.0.0.1", "aclFileFullPath": "/etc/passwd"}
            answer = await ask(address, sign(request(Code.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG, elsewhere), ADMIN))
            assert answer.code == ResponseCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG_FAILED
            open_door = sign(request(Code.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG, {"globalWhiteAddrs": "127.0.0.1"}), ADMIN)
            assert (await ask(address, open_door)).code == 0
            assert (await ask(address, send_request("orders", b"x"))).code == 0

    run(body())


def test_without_its_files_a_broker_lets_nobody_in() -> None:
    async def body() -> None:
        async with serving_broker(GUARDED) as (_, address):
            for command in (send_request("orders", b"x"), request(Code.GET_BROKER_CONFIG), request(Code.HEART_BEAT)):
                answer = await ask(address, sign(command, ADMIN))
                assert answer.code == ResponseCode.SYSTEM_ERROR
                assert "its files have not been read" in (answer.remark or "")

    run(body())


def test_with_access_control_off_its_commands_say_so() -> None:
    async def body() -> None:
        async with serving_broker() as (_, address):
            for code, refusal in ((50, 209), (51, 210), (53, 211), (52, 1)):
                fields = {"accessKey": "alice-key", "globalWhiteAddrs": "*"}
                answer = await ask(address, request(code, fields))
                assert (answer.code, answer.remark) == (refusal, "access control is off: aclEnable=false")
            data = HeartbeatData(client_id="c", producer_data_set=(ProducerData(group_name="p"),))
            assert (await ask(address, request(Code.HEART_BEAT, body=encode_body(data)))).code == 0

    run(body())
