"""A nameserver that demands signatures for what changes it, and brokers that sign, plain and over TLS."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from refmq.net.acl_files import AclFiles
from refmq.net.broker_registration import Signing
from refmq.net.client import Client
from refmq.net.nameserver import Nameserver
from refmq.net.tls import ClientTls, ServerTls, TlsMode, client_context, server_context
from refmq.protocol.acl import sign
from refmq.protocol.codes import RequestCode as Code
from refmq.protocol.codes import ResponseCode
from refmq.protocol.command import RemotingCommand, oneway, request
from tests.acl.files import ADMIN, ALICE, TEXT
from tests.net.broker_requests import TIMEOUT_S
from tests.net.broker_support import FREE_PORT, serving_broker
from tests.net.support import TLS_FOLDER, asking, run

CERTIFICATE, KEY = TLS_FOLDER / "certificate.pem", TLS_FOLDER / "key.pem"


@asynccontextmanager
async def guarded(folder: Path, tls: ServerTls | None = None) -> AsyncIterator[tuple[Nameserver, str]]:
    (folder / "plain_acl.yml").write_text(TEXT)
    files = AclFiles(folder)
    files.load()
    nameserver = Nameserver(accounts=files, tls=tls)
    host, port = await nameserver.start("127.0.0.1", 0)
    try:
        yield nameserver, f"{host}:{port}"
    finally:
        await nameserver.close(1)


KV = {"namespace": "n", "key": "k", "value": "v"}


def test_strangers_may_ask_and_only_admins_may_change(tmp_path: Path) -> None:
    async def story() -> None:
        async with guarded(tmp_path) as (nameserver, address), asking() as client:
            put = request(Code.PUT_KV_CONFIG, KV)

            async def ask(command: RemotingCommand) -> RemotingCommand:
                return await client.invoke(address, command, TIMEOUT_S)

            for attack in (
                put,
                sign(put, ALICE),
                replace(sign(put, ADMIN), ext_fields={**sign(put, ADMIN).fields, "value": "w"}),
            ):
                answer = await ask(attack)
                assert answer.code == ResponseCode.SYSTEM_ERROR
                assert (answer.remark or "").startswith("org.apache.rocketmq.acl.common.AclException: ")
            await client.oneway(address, oneway(put.code, put.fields), TIMEOUT_S)
            for code in (100, 102, 103, 104, 205, 216, 318, 319, 322, 327):
                assert "No accessKey" in ((await ask(request(code))).remark or "")
            long = request(Code.REGISTER_BROKER, {"brokerName": "fake"}, b" " * 300_000)
            assert "No accessKey" in ((await ask(long)).remark or "")
            assert len(nameserver.state.kv) == 0
            assert (await ask(request(Code.GET_BROKER_CLUSTER_INFO))).code == 0
            assert (await ask(sign(put, ADMIN))).code == 0
            assert (await ask(request(Code.GET_KV_CONFIG, KV))).fields["value"] == "v"
            (tmp_path / "plain_acl.yml").write_text("")
            (tmp_path / "plain_acl.yml").unlink()
            assert nameserver._accounts is not None
            await nameserver._accounts.look_again()
            assert "No acl config" in ((await ask(sign(put, ADMIN))).remark or "")

    run(story())


def test_a_broker_that_signs_is_registered_and_one_that_does_not_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with guarded(tmp_path) as (nameserver, address):
            config = replace(FREE_PORT, namesrv_addr=address)
            with caplog.at_level(logging.WARNING):
                async with serving_broker(config):
                    assert len(nameserver.state.routes.live) == 0
            assert "refuses request 103" in caplog.text
            async with serving_broker(config, signing=Signing(ADMIN)) as (node, _):
                assert len(nameserver.state.routes.live) == 1
                await node.registration.register_again()
                assert len(nameserver.state.routes.live) == 1
            assert len(nameserver.state.routes.live) == 0  # it signs its farewell as well

    run(story())


def test_registration_over_tls_with_client_certificates(tmp_path: Path) -> None:
    """The second factor: who has no certificate does not even get as far as a request."""

    async def story() -> None:
        server = ServerTls(TlsMode.ENFORCING, server_context(CERTIFICATE, KEY, client_authority=CERTIFICATE))
        async with guarded(tmp_path, server) as (nameserver, address):
            config = replace(FREE_PORT, namesrv_addr=address, register_broker_timeout_mills=3_000)
            for signing in (
                Signing(ADMIN),
                Signing(ADMIN, ClientTls(client_context(authority=CERTIFICATE))),
                Signing(None, ClientTls(client_context(authority=CERTIFICATE, certificate=CERTIFICATE, key=KEY))),
            ):
                async with serving_broker(config, signing=signing):
                    assert len(nameserver.state.routes.live) == 0
            both = Signing(ADMIN, ClientTls(client_context(authority=CERTIFICATE, certificate=CERTIFICATE, key=KEY)))
            async with serving_broker(config, signing=both):
                assert len(nameserver.state.routes.live) == 1

    run(story())


def test_a_broker_serves_whoever_has_a_certificate_of_its_authority(tmp_path: Path) -> None:
    async def story() -> None:
        server = ServerTls(TlsMode.ENFORCING, server_context(CERTIFICATE, KEY, client_authority=CERTIFICATE))
        assert server.demands_certificate
        async with serving_broker(tls=server) as (_, address):
            mine = client_context(authority=CERTIFICATE, certificate=CERTIFICATE, key=KEY)
            async with asking(Client(tls=ClientTls(mine))) as client:
                assert (await client.invoke(address, request(Code.GET_BROKER_CONFIG), TIMEOUT_S)).code == 0
            async with asking(Client(tls=ClientTls(client_context()))) as stranger:
                with pytest.raises(Exception, match=r"(?i)closed|certificate|lost|reset|no connection"):
                    await stranger.invoke(address, request(Code.GET_BROKER_CONFIG), TIMEOUT_S)

    run(story())
