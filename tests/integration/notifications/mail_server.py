"""A real SMTP server on loopback that accepts or refuses as configured, and stores accepted mails."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any

from aiosmtpd.controller import Controller

from devstack.process import free_ports

TAKEN = "250 OK"


@dataclass
class MailServer:
    """``recipient`` and ``data``: what it answers to RCPT and after the message."""

    port: int
    took: list[EmailMessage] = field(default_factory=list)
    to: list[list[str]] = field(default_factory=list)
    recipient: str = TAKEN
    data: str = TAKEN

    async def handle_RCPT(
        self, server: Any, session: Any, envelope: Any, address: str, options: list[str]
    ) -> str:
        if self.recipient == TAKEN:
            envelope.rcpt_tos.append(address)
        return self.recipient

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        if self.data == TAKEN:
            self.took.append(message_from_bytes(envelope.content, policy=default))  # type: ignore[arg-type]
            self.to.append(envelope.rcpt_tos)
        return self.data


@contextmanager
def taking_mails() -> Iterator[MailServer]:
    """A server, until the block ends."""
    server = MailServer(port=free_ports(1)[0])
    controller = Controller(server, hostname="127.0.0.1", port=server.port)
    controller.start()
    try:
        yield server
    finally:
        controller.stop()
