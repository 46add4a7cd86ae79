"""Requests to the web server by the drill's event loop, each on a connection of its own."""

import asyncio
import json
from typing import Any

from devstack.tcp_ports import LOOPBACK

# Longer than anybody waits, so that what is late is measured and not cut off.
GIVE_UP_S = 60


async def ask(
    port: int, path: str, *, method: str = "GET", headers: dict[str, str], body: Any = None
) -> tuple[int, bytes]:
    """The status and the body; 0 and why where there is no answer."""
    content = b"" if body is None else json.dumps(body).encode()
    told = {"Host": "localhost", "Content-Length": str(len(content)), **headers}
    if content:
        told["Content-Type"] = "application/json"
    # HTTP/1.0: streams come as they are, and end with the connection.
    head = "".join(f"{name}: {value}\r\n" for name, value in told.items())
    try:
        async with asyncio.timeout(GIVE_UP_S):
            reader, writer = await asyncio.open_connection(LOOPBACK, port)
            try:
                writer.write(f"{method} {path} HTTP/1.0\r\n{head}\r\n".encode() + content)
                answer = await reader.read()
            finally:
                writer.close()
    except (OSError, TimeoutError) as error:
        return 0, repr(error).encode()
    first, _, answered = answer.partition(b"\r\n\r\n")
    return int(first.split(b" ", 2)[1]) if first else 0, answered
