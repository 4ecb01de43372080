"""What a broker process decides before it starts: where each setting comes from, and where its files are."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from refmq.errors import UsageError
from refmq.model.broker_config import BrokerConfig
from refmq.net.broker_process import (
    LAPTOP_STORE,
    BrokerOptions,
    plan_broker,
    plan_signing,
    wait_for_end,
    warnings_of_reach,
)
from refmq.net.engines import EngineChoice
from refmq.net.tls import ServerTls, TlsMode, server_context
from refmq.protocol.acl import Credentials
from refmq.store import StoreConfig
from tests.net.support import TLS_FOLDER


def conf(folder: Path, text: str) -> Path:
    path = folder / "broker.conf"
    path.write_text(text)
    return path


def test_the_command_line_has_the_last_word_then_the_file_then_the_default(tmp_path: Path) -> None:
    path = conf(tmp_path, "listenPort=1\nnamesrvAddr=a:1\nstorePathRootDir=/from/file\nregionId=r")
    plan = plan_broker(BrokerOptions(conf=path))
    assert (plan.config.listen_port, plan.config.namesrv_addr, plan.config.region_id) == (1, "a:1", "r")
    assert (plan.folder, plan.settings_path, plan.listen) == (Path("/from/file"), path, "127.0.0.1")
    given = BrokerOptions(
        conf=path, port=0, namesrv="b:2", listen="::1", folder=tmp_path, engine=EngineChoice.REFERENCE
    )
    plan = plan_broker(given)
    assert (plan.config.listen_port, plan.config.namesrv_addr) == (0, "b:2")
    assert (plan.folder, plan.settings_path, plan.listen) == (tmp_path, path, "::1")
    assert plan.engine is EngineChoice.REFERENCE


def test_without_a_file_everything_is_the_default_and_changes_go_below_the_store() -> None:
    plan = plan_broker(BrokerOptions())
    assert (plan.config, plan.store, plan.complaints) == (BrokerConfig(), StoreConfig(), ())
    assert plan.settings_path == plan.folder / "config" / "broker.properties"


def test_it_listens_on_loopback_unless_told_and_registers_where_it_listens(tmp_path: Path) -> None:
    path = conf(tmp_path, "bindAddress=10.1.2.3")
    assert plan_broker(BrokerOptions(conf=path)).listen == "10.1.2.3"
    assert plan_broker(BrokerOptions(conf=path)).config.broker_ip1 == "10.1.2.3"
    assert plan_broker(BrokerOptions(conf=path, listen="::1")).config.broker_ip1 == "::1"
    everywhere = plan_broker(BrokerOptions(listen="0.0.0.0", namesrv="127.0.0.1:9876"))
    assert everywhere.config.broker_ip1 == "127.0.0.1"
    told = plan_broker(BrokerOptions(conf=conf(tmp_path, "brokerIP1=mq.example.org"), listen="0.0.0.0"))
    assert told.config.broker_ip1 == "mq.example.org"


def test_an_operator_is_told_who_can_reach_it(tmp_path: Path) -> None:
    open_, off = plan_broker(BrokerOptions(listen="0.0.0.0", namesrv="127.0.0.1:1")), ServerTls()
    lines = warnings_of_reach(open_, off, 10911)
    assert len(lines) == 2
    assert lines[0].startswith("OPEN: ")
    assert lines[1].startswith("clients elsewhere are told 127.0.0.1, where they will not find the broker")
    guarded = replace(open_, config=replace(open_.config, acl_enable=True, broker_ip1="10.1.2.3"))
    assert warnings_of_reach(guarded, off, 10911) == []
    context = server_context(
        TLS_FOLDER / "certificate.pem", TLS_FOLDER / "key.pem", client_authority=TLS_FOLDER / "certificate.pem"
    )
    named = replace(open_, config=replace(open_.config, broker_ip1="10.1.2.3"))
    assert warnings_of_reach(named, ServerTls(TlsMode.ENFORCING, context), 10911) == []
    assert len(warnings_of_reach(named, ServerTls(TlsMode.PERMISSIVE, context), 10911)) == 1
    assert warnings_of_reach(plan_broker(BrokerOptions()), off, 10911) == []


def test_accounts_are_beside_the_settings_or_in_the_home(tmp_path: Path) -> None:
    path = conf(tmp_path, "aclEnable=true")
    plan = plan_broker(BrokerOptions(conf=path))
    assert plan.config.acl_enable
    assert plan.acl_folder == tmp_path
    home = plan_broker(BrokerOptions(conf=conf(tmp_path, "rocketmqHome=/opt/rocketmq")))
    assert home.acl_folder == Path("/opt/rocketmq/conf")


def test_registrations_are_signed_and_encrypted_as_configured(tmp_path: Path) -> None:
    plan = plan_broker(BrokerOptions(conf=conf(tmp_path, "useTLS=true")))
    (tmp_path / "tools.yml").write_text("accessKey: broker-key\nsecretKey: broker-secret\n")
    signing = plan_signing(plan)
    assert signing.credentials == Credentials("broker-key", "broker-secret")
    assert signing.tls is not None
    half = plan_broker(BrokerOptions(conf=conf(tmp_path, "useTLS=true\ntls.client.certPath=/a.pem")))
    with pytest.raises(UsageError, match="given together"):
        plan_signing(half)


def test_a_path_that_is_not_used_is_told(tmp_path: Path) -> None:
    elsewhere = conf(tmp_path, f"storePathRootDir={tmp_path}\nstorePathCommitLog=/other")
    (complaint,) = plan_broker(BrokerOptions(conf=elsewhere)).complaints
    assert complaint.startswith("storePathCommitLog")
    usual = conf(tmp_path, f"storePathRootDir={tmp_path}\nstorePathCommitLog={tmp_path}/commitlog")
    assert plan_broker(BrokerOptions(conf=usual)).complaints == ()


def test_a_slave_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="brokerId must be 0"):
        plan_broker(BrokerOptions(conf=conf(tmp_path, "brokerId=1")))


def test_the_store_of_a_laptop_is_smaller_and_otherwise_the_same() -> None:
    default = StoreConfig()
    assert LAPTOP_STORE.log_file_bytes < default.log_file_bytes
    assert LAPTOP_STORE.queue_file_bytes < default.queue_file_bytes
    assert LAPTOP_STORE.index_entries < default.index_entries
    assert (LAPTOP_STORE.flush_mode, LAPTOP_STORE.on_damage) == (default.flush_mode, default.on_damage)


class Node:
    def __init__(self) -> None:
        self.failure: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()


@pytest.mark.parametrize("error", [UsageError("no"), AssertionError("ours"), ZeroDivisionError("ours too")])
def test_a_broker_that_cannot_go_on_ends_its_process_with_the_reason(error: Exception) -> None:
    async def story() -> None:
        node = Node()
        asyncio.get_running_loop().call_soon(node.failure.set_result, error)
        with pytest.raises((UsageError, AssertionError), match=r"no|ours") as caught:
            async with asyncio.timeout(10):
                await wait_for_end(asyncio.Event(), node)  # type: ignore[arg-type]  # all that it looks at
        assert caught.value is error or caught.value.__cause__ is error

    asyncio.run(story())


def test_who_is_asked_to_stop_stops_without_an_error() -> None:
    async def story() -> None:
        stop = asyncio.Event()
        stop.set()
        async with asyncio.timeout(10):
            await wait_for_end(stop, Node())  # type: ignore[arg-type]  # all that it looks at

    asyncio.run(story())
