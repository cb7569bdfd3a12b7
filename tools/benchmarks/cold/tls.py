"""TLS in front of the local services, as at AWS: with a handshake, and roots to load before it."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import ipaddress
import ssl
from pathlib import Path
from urllib.parse import urlsplit

import botocore

_HOST = "127.0.0.1"
READ_BYTES = 2**16


class TlsFront:
    """Accepts TLS on loopback and passes the bytes on. `roots` is the file of the roots that functions load.

    It has the roots that botocore comes with, about as many as Lambda's system has, and the front's own certificate.
    """

    def __init__(self, folder: Path) -> None:
        self.roots = folder / "roots.pem"
        certificate, key = self_signed()
        own = folder / "front.pem"
        own.write_bytes(key + certificate)
        known = Path(botocore.__file__).with_name("cacert.pem").read_bytes()
        self.roots.write_bytes(known + certificate)
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(own)
        self._servers: list[asyncio.Server] = []

    @property
    def variables(self) -> dict[str, str]:
        """What makes a function, and botocore in it, trust the front."""
        return {"SSL_CERT_FILE": str(self.roots), "REQUESTS_CA_BUNDLE": str(self.roots)}

    async def open(self, url: str) -> str:
        """The https URL of the service at `url`."""
        port = urlsplit(url).port

        async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError):
                inner_reader, inner_writer = await asyncio.open_connection(_HOST, port)
                await asyncio.gather(pass_on(reader, inner_writer), pass_on(inner_reader, writer))

        server = await asyncio.start_server(accepted, _HOST, 0, ssl=self._context)
        self._servers.append(server)
        return f"https://{_HOST}:{server.sockets[0].getsockname()[1]}"

    def close(self) -> None:
        for server in self._servers:
            server.close()


async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Write what comes, until it ends."""
    try:
        while data := await reader.read(READ_BYTES):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


def self_signed(*names: str) -> tuple[bytes, bytes]:
    """A certificate for this address and these host names, signed by itself, and its key."""
    # Imported here, because only this command needs them.
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Larder's benchmark")])
    now = dt.datetime.now(dt.UTC)
    address = x509.IPAddress(ipaddress.ip_address(_HOST))
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([address, *map(x509.DNSName, names)]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM), key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
