"""Requests to the web server from the drill's event loop. Each request has a new connection."""

import asyncio
import json
from typing import Any

from devstack.process import LOOPBACK

# Seconds. This is longer than people wait, so that the drill also measures late responses.
GIVE_UP_S = 60


async def request(
    port: int, path: str, *, method: str = "GET", headers: dict[str, str], body: Any = None
) -> tuple[int, bytes]:
    """Return the status and the body of the response. Without a response, return 0 and the reason."""
    content = b"" if body is None else json.dumps(body).encode()
    sent_headers = {"Host": "localhost", "Content-Length": str(len(content)), **headers}
    if content:
        sent_headers["Content-Type"] = "application/json"
    # With HTTP/1.0, streams arrive without chunks and end with the connection.
    head = "".join(f"{name}: {value}\r\n" for name, value in sent_headers.items())
    try:
        async with asyncio.timeout(GIVE_UP_S):
            reader, writer = await asyncio.open_connection(LOOPBACK, port)
            try:
                writer.write(f"{method} {path} HTTP/1.0\r\n{head}\r\n".encode() + content)
                response = await reader.read()
            finally:
                writer.close()
    except (OSError, TimeoutError) as error:
        return 0, repr(error).encode()
    first, _, body = response.partition(b"\r\n\r\n")
    return int(first.split(b" ", 2)[1]) if first else 0, body
