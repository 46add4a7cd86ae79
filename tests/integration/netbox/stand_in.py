"""A NetBox for tests on a separate port: it forwards to a real NetBox or replays a recording.

Both kinds count the requests. A recording is a list of exchanges in the order in which they were made;
the replay refuses any other request, or another order of requests, and fails the test.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx

NEUTRAL_HOST = "http://netbox.invalid"
_READS = {"GET", "HEAD"}


@dataclass
class Request:
    method: str
    path: str
    query: list[list[str]]
    body: Any
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def text(self) -> dict[str, Any]:
        """Return the text as recordings store it: without headers, which contain tokens."""
        return {"method": self.method, "path": self.path, "query": self.query, "body": self.body}


@dataclass
class Answer:
    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


Backend = Callable[[Request], Answer | None]


@dataclass
class StandIn:
    """``requests``: all requests since the test last cleared the list."""

    url: str
    token: str = ""
    requests: list[Request] = field(default_factory=list)

    @property
    def writes(self) -> list[tuple[str, str]]:
        return [(each.method, each.path) for each in self.requests if each.method not in _READS]


@contextmanager
def stand_in_netbox(backend: Backend) -> Iterator[StandIn]:
    """Serve ``backend`` on a free loopback port. None from the backend drops the connection."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Otherwise the body waits 40 ms for the acknowledgement of the headers.
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            raw, parts = self.rfile.read(length), urlsplit(self.path)
            request = Request(
                self.command,
                parts.path,
                sorted([name, value] for name, value in parse_qsl(parts.query, keep_blank_values=True)),
                json.loads(raw) if raw else None,
                dict(self.headers.items()),
            )
            stand_in.requests.append(request)
            answer = backend(request)
            if answer is None:
                self.close_connection = True
                return
            self.send_response(answer.status)
            for name, value in {"Content-Type": "application/json", **answer.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        do_POST = do_PATCH = do_DELETE = do_GET  # noqa: N815 - as http.server calls them

        def log_message(self, *args: Any) -> None:
            """Log nothing: tests report failures themselves."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    stand_in = StandIn(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield stand_in
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Forwarding:
    """Forward to a running NetBox. ``exchanges``: the content of a recording."""

    def __init__(self, url: str) -> None:
        self._url, self.exchanges = url.rstrip("/"), list[dict[str, Any]]()
        self._client = httpx.Client(trust_env=False, timeout=60)

    def __call__(self, request: Request) -> Answer:
        answer = self._client.request(
            request.method,
            self._url + request.path,
            params=[(name, value) for name, value in request.query],
            json=request.body,
            headers={
                name: value
                for name, value in request.headers.items()
                if name.lower() in ("authorization", "accept")
            },
        )
        text = answer.text.replace(self._url, NEUTRAL_HOST)
        document = json.loads(text) if text else None
        if request.path == "/api/status/":
            document["hostname"] = "netbox.invalid"
        self.exchanges.append({"request": request.text, "status": answer.status_code, "response": document})
        return Answer(answer.status_code, answer.content)


class Replaying:
    """Replay the recorded responses of a NetBox."""

    def __init__(self, recording: Path) -> None:
        self._exchanges = json.loads(recording.read_text())["exchanges"]
        self._next = 0
        self.wrong: list[str] = []

    def __call__(self, request: Request) -> Answer:
        expected = self._exchanges[self._next] if self._next < len(self._exchanges) else None
        if expected is None or expected["request"] != request.text:
            wanted = "nothing more" if expected is None else json.dumps(expected["request"])
            self.wrong.append(f"requested {json.dumps(request.text)}\nrecorded {wanted}")
            return Answer(599, json.dumps({"detail": "this is not in the recording"}).encode())
        self._next += 1
        document = expected["response"]
        return Answer(expected["status"], b"" if document is None else json.dumps(document).encode())

    @property
    def left(self) -> int:
        """Return the exchanges that no request used."""
        return len(self._exchanges) - self._next
