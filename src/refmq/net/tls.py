"""TLS inside a connection, on any transport, and beside plain text on the same port.

The records of TLS are handled by ``ssl.SSLObject`` between two memory buffers, so TLS works on every transport that
carries bytes, simulated ones too. A server looks at the first byte of a connection: 0x16 starts a TLS handshake, and
no frame starts with it, because its length would be at least 369 MB.
"""

from __future__ import annotations

import shutil
import ssl
import subprocess
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from refmq.errors import MissingTool, RefmqError, UsageError, WireError

HANDSHAKE_BYTE: Final = 0x16
READ_BYTES: Final = 64 * 1024
OPENSSL_TIMEOUT_S: Final = 30
CERTIFICATE_DAYS: Final = 3650


class TlsMode(StrEnum):
    """What a server does with the two kinds of connections: upstream's ``tls.server.mode``."""

    DISABLED = "disabled"
    """TLS is refused."""
    PERMISSIVE = "permissive"
    """Both are served."""
    ENFORCING = "enforcing"
    """Plain text is refused."""


@dataclass(frozen=True, slots=True)
class ServerTls:
    """How a server treats TLS. Without a context it cannot speak it."""

    mode: TlsMode = TlsMode.DISABLED
    context: ssl.SSLContext | None = None

    def __post_init__(self) -> None:
        if self.context is None and self.mode is not TlsMode.DISABLED:
            raise UsageError(f"TLS mode {self.mode.value} needs a certificate.")

    @property
    def demands_certificate(self) -> bool:
        """Whether nobody comes in without a certificate of his own."""
        demanded = self.context is not None and self.context.verify_mode is ssl.CERT_REQUIRED
        return demanded and self.mode is TlsMode.ENFORCING


@dataclass(frozen=True, slots=True)
class ClientTls:
    """How a client makes TLS connections. ``hostname`` is what the certificate must name, if anything."""

    context: ssl.SSLContext
    hostname: str | None = None


class TlsLayer:
    """One end of a TLS connection, without a transport: bytes of the wire in, plain bytes out, and the reverse."""

    def __init__(self, context: ssl.SSLContext, *, server_side: bool, hostname: str | None = None) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._object = context.wrap_bio(
            self._incoming, self._outgoing, server_side=server_side, server_hostname=hostname
        )
        self._unsent: list[bytes] = []
        self.ready = False
        self.ended = False  # the peer has ended the session

    def receive(self, data: bytes) -> bytes:
        """The plain bytes that ``data`` completes. ``WireError`` when it is not TLS or the handshake fails."""
        self._incoming.write(data)
        try:
            if not self.ready and not self._shake_hands():
                return b""
            return self._read_all()
        except ssl.SSLError as error:
            raise WireError("TLS record", 0, "valid", error.reason or str(error)) from None

    def send(self, plain: bytes) -> None:
        """Encrypt, or keep for later until the handshake is done."""
        if self.ready:
            self._object.write(plain)
        else:
            self._unsent.append(plain)

    def start(self) -> None:
        """For a client: say hello."""
        self._shake_hands()

    def close(self) -> None:
        """End the session."""
        if self.ready:
            try:
                self._object.unwrap()
            except (ssl.SSLError, OSError):
                return  # the peer has not ended it yet, and need not

    def take_outgoing(self) -> bytes:
        """The bytes to send to the peer now."""
        return self._outgoing.read()

    @property
    def unsent_bytes(self) -> int:
        return sum(map(len, self._unsent))

    def _shake_hands(self) -> bool:
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            return False
        self.ready = True
        for plain in self._unsent:
            self._object.write(plain)
        self._unsent.clear()
        return True

    def _read_all(self) -> bytes:
        pieces = []
        while True:
            try:
                piece = self._object.read(READ_BYTES)
            except ssl.SSLWantReadError:
                break
            except ssl.SSLZeroReturnError:
                self.ended = True
                break
            if not piece:
                self.ended = True
                break
            pieces.append(piece)
        return b"".join(pieces)


def server_context(
    certificate: Path, key: Path, *, key_password: str | None = None, client_authority: Path | None = None
) -> ssl.SSLContext:
    """The context of a server with its certificate; clients must present one too if an authority is given."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_chain(context, certificate, key, key_password)
    if client_authority is not None:
        load_authority(context, client_authority)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def client_context(
    *,
    authority: Path | None = None,
    certificate: Path | None = None,
    key: Path | None = None,
    key_password: str | None = None,
) -> ssl.SSLContext:
    """The context of a client. Without an authority every certificate is trusted, as upstream's clients do."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if authority is not None:
        load_authority(context, authority)
        context.verify_mode = ssl.CERT_REQUIRED
    if certificate is not None:
        load_chain(context, certificate, key or certificate, key_password)
    return context


def load_chain(context: ssl.SSLContext, certificate: Path, key: Path, password: str | None) -> None:
    for path in (certificate, key):
        if not path.is_file():
            raise UsageError(f"There is no file {path} for TLS.")
    try:
        context.load_cert_chain(certificate, key, password or "")
    except ssl.SSLError as error:
        raise UsageError(f"{certificate} and {key} are not a certificate and its key: {error.reason}.") from None


def load_authority(context: ssl.SSLContext, authority: Path) -> None:
    if not authority.is_file():
        raise UsageError(f"There is no file {authority} for TLS.")
    try:
        context.load_verify_locations(authority)
    except ssl.SSLError as error:
        raise UsageError(f"{authority} is not a certificate: {error.reason}.") from None


def self_signed_certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate and key for tests and laptops, made with ``openssl`` if the folder has none yet."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    if certificate.is_file() and key.is_file():
        return certificate, key
    openssl = shutil.which("openssl")
    if openssl is None:
        raise MissingTool("openssl", "Install it, or give a certificate of your own.")
    folder.mkdir(parents=True, exist_ok=True)
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    who = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    command = [openssl, "req", "-x509", *kind, *who, "-days", str(CERTIFICATE_DAYS)]
    key.touch(mode=0o600)
    try:
        subprocess.run(
            [*command, "-keyout", str(key), "-out", str(certificate)],
            check=True,
            capture_output=True,
            timeout=OPENSSL_TIMEOUT_S,
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired, OSError) as error:
        key.unlink(missing_ok=True)
        raise RefmqError(f"openssl could not make a certificate: {error}") from None
    return certificate, key
