"""A receiver of webhooks: a real server on loopback that responds as configured, and stores requests."""

import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Got:
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """``answers``: statuses of the next requests; after them 204. ``location`` goes with a redirect,
    ``retry_after`` with any answer. ``refused``: so many messages get 503 the first time they come."""

    port: int
    scheme: str
    got: list[Got] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    refused: int = 0
    location: str = ""
    retry_after: str = ""
    body: bytes = b""
    # Sent a byte at a time with such pauses, in seconds; 0: at once.
    drip_s: float = 0.0
    at_once: int = 0
    most_at_once: int = 0

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/hook"

    def status_for(self, got: Got) -> int:
        ids = list(dict.fromkeys(before.headers.get("webhook-id") for before in self.got))
        if len(ids) < self.refused and got.headers.get("webhook-id") not in ids:
            return 503
        return self.answers.pop(0) if self.answers else 204


@contextmanager
def receiving(*, tls: ssl.SSLContext | None = None, address: str = "127.0.0.1") -> Iterator[Receiver]:
    """A receiver, until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Else the body waits 40 ms for the acknowledgement of the headers.
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            with lock:
                receiver.at_once += 1
                receiver.most_at_once = max(receiver.most_at_once, receiver.at_once)
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got = Got(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
            with lock:
                status = receiver.status_for(got)
                receiver.got.append(got)
            try:
                self._answer(status)
            except OSError:
                self.close_connection = True
            finally:
                with lock:
                    receiver.at_once -= 1

        def _answer(self, status: int) -> None:
            head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(receiver.body)}\r\n"
            if receiver.location:
                head += f"Location: {receiver.location}\r\n"
            if receiver.retry_after:
                head += f"Retry-After: {receiver.retry_after}\r\n"
            said = f"{head}\r\n".encode() + receiver.body
            if not receiver.drip_s:
                self.wfile.write(said)
                return
            for byte in said:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                time.sleep(receiver.drip_s)

        def log_message(self, *_: Any) -> None:
            """Quietly."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Callers that hang up are what some tests are about."""

    lock = threading.Lock()
    server = Server((address, 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    receiver = Receiver(port=server.server_port, scheme="https" if tls else "http")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def certified(folder: Path, name: str) -> tuple[ssl.SSLContext, Path]:
    """A TLS context of a server for ``name`` with a new certificate, and the file to trust it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(tz=UTC)
    try:
        alternative: x509.GeneralName = x509.IPAddress(ip_address(name))
    except ValueError:
        alternative = x509.DNSName(name)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    trusted, private = folder / "receiver.pem", folder / "receiver.key"
    trusted.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(trusted, private)
    return context, trusted
