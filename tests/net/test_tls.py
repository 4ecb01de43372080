"""TLS and plain text on one port, told apart by the first byte."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from refmq.errors import ConnectFailed, MissingTool, NetworkError, UsageError, WireError
from refmq.net import tls
from refmq.net.client import Client
from refmq.net.limits import Limits
from refmq.net.tls import ClientTls, ServerTls, TlsLayer, TlsMode
from refmq.protocol.command import request
from tests.net.support import TLS_FOLDER, asking, raw_peer, read_to_end, run, serving, until

CERTIFICATE, KEY = TLS_FOLDER / "certificate.pem", TLS_FOLDER / "key.pem"


def server_tls(mode: TlsMode) -> ServerTls:
    return ServerTls(mode, tls.server_context(CERTIFICATE, KEY))


def trusting() -> Client:
    return Client(tls=ClientTls(tls.client_context()), limits=Limits(connect_timeout_s=20))


def test_a_permissive_server_serves_both_kinds_on_one_port() -> None:
    async def scenario() -> None:
        here = serving(tls=server_tls(TlsMode.PERMISSIVE))
        async with here as (server, address), asking() as plain, asking(trusting()) as encrypted:
            for client in (plain, encrypted):
                answer = await client.invoke(address, request(1, body=bytes(1_000_000)), 10)
                assert len(answer.body) == 1_000_000
            assert sorted(connection.encrypted for connection in server.connections) == [False, True]

    run(scenario())


@pytest.mark.parametrize(("mode", "encrypted"), [(TlsMode.ENFORCING, False), (TlsMode.DISABLED, True)])
def test_the_kind_that_the_mode_forbids_is_refused(mode: TlsMode, encrypted: bool) -> None:
    async def scenario() -> None:
        async with serving(tls=server_tls(mode)) as (_, address):
            async with asking(trusting() if encrypted else Client()) as client:
                with pytest.raises(NetworkError):
                    await client.invoke(address, request(1), 10)
            async with asking(Client() if encrypted else trusting()) as client:
                assert (await client.invoke(address, request(1), 10)).code == 0

    run(scenario())


def test_a_client_with_an_authority_checks_the_certificate(tmp_path: Path) -> None:
    other, _ = tls.self_signed_certificate(tmp_path)

    async def scenario() -> None:
        async with serving(tls=server_tls(TlsMode.PERMISSIVE)) as (_, address):
            good = ClientTls(tls.client_context(authority=CERTIFICATE), "localhost")
            async with asking(Client(tls=good)) as client:
                assert (await client.invoke(address, request(1), 10)).code == 0
            bad = ClientTls(tls.client_context(authority=other), "localhost")
            async with asking(Client(tls=bad)) as client:
                with pytest.raises(ConnectFailed, match="CERTIFICATE_VERIFY_FAILED"):
                    await client.invoke(address, request(1), 10)

    run(scenario())


def test_half_a_handshake_is_given_up_and_broken_ones_are_refused() -> None:
    async def scenario() -> None:
        limits = Limits(idle_timeout_s=0.05, frame_timeout_s=0.05)
        async with serving(limits=limits, tls=server_tls(TlsMode.PERMISSIVE)) as (server, address):
            async with raw_peer(address) as (reader, writer):
                writer.write(b"\x16\x03\x01\x02")
                assert await read_to_end(reader) == b""
            async with raw_peer(address) as (reader, writer):
                writer.write(b"\x16\x03\x01\x00\x05hello")
                await read_to_end(reader)  # an alert at most
            await until(lambda: not server.connections)

    run(scenario())


def test_a_closing_server_ends_the_session_of_its_clients() -> None:
    async def scenario() -> None:
        async with serving(tls=server_tls(TlsMode.ENFORCING)) as (server, address), asking(trusting()) as client:
            connection = await client.connect(address, 10)
            await client.invoke(address, request(1), 10)
            await server.close(1)
            await connection.wait_closed()
            assert connection.close_reason in ("the peer ended the TLS session", "the peer closed")

    run(scenario())


def test_every_split_of_the_bytes_gives_the_same_plain_text() -> None:
    for size in (1, 2, 7, 100, 100_000):
        server = TlsLayer(tls.server_context(CERTIFICATE, KEY), server_side=True)
        client = TlsLayer(tls.client_context(), server_side=False)
        client.start()
        client.send(b"x" * 50_000)  # before the handshake: kept
        received = b""
        for _ in range(10):
            for source, target in ((client, server), (server, client)):
                wire = source.take_outgoing()
                for start in range(0, len(wire), size):
                    received += target.receive(wire[start : start + size])
        assert received == b"x" * 50_000
        assert client.unsent_bytes == 0


def test_what_is_no_tls_is_a_wire_error() -> None:
    server = TlsLayer(tls.server_context(CERTIFICATE, KEY), server_side=True)
    with pytest.raises(WireError, match="TLS record"):
        server.receive(b"\x16\x03\x01\x00\x05hello")


def test_a_certificate_is_made_once(tmp_path: Path) -> None:
    first = tls.self_signed_certificate(tmp_path / "tls")
    content = [path.read_bytes() for path in first]
    assert tls.self_signed_certificate(tmp_path / "tls") == first
    assert [path.read_bytes() for path in first] == content
    assert first[1].stat().st_mode & 0o077 == 0


def test_without_openssl_one_line_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(MissingTool, match="openssl was not found"):
        tls.self_signed_certificate(tmp_path)


def test_wrong_files_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There is no file"):
        tls.server_context(tmp_path / "none.pem", KEY)
    with pytest.raises(UsageError, match="not a certificate"):
        tls.server_context(KEY, KEY)
    (tmp_path / "text").write_text("text")
    with pytest.raises(UsageError, match="is not a certificate"):
        tls.client_context(authority=tmp_path / "text")
    with pytest.raises(UsageError, match="needs a certificate"):
        ServerTls(TlsMode.ENFORCING)


def test_a_server_can_ask_its_clients_for_a_certificate() -> None:
    async def scenario() -> None:
        settings = ServerTls(TlsMode.ENFORCING, tls.server_context(CERTIFICATE, KEY, client_authority=CERTIFICATE))
        async with serving(tls=settings) as (_, address):
            known = ClientTls(tls.client_context(certificate=CERTIFICATE, key=KEY))
            async with asking(Client(tls=known)) as client:
                assert (await client.invoke(address, request(1), 10)).code == 0
            async with asking(trusting()) as client:
                with pytest.raises(NetworkError):
                    await client.invoke(address, request(1), 10)

    run(scenario())
