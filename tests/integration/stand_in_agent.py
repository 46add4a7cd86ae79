"""An agent for tests: real TLS sockets and the contract's answers, without a VPP."""

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from provisioning.intent_document import sha256_of

Answer = Callable[[dict[str, Any]], tuple[int, Any]]


@dataclass
class StandInAgent:
    """An agent that records each request; replace ``answer`` to change its answers."""

    router: str
    url: str = ""
    stored: dict[str, Any] | None = None
    intents: list[dict[str, Any]] = field(default_factory=list)
    answer: Answer | None = None
    # As in GET /v1/state.
    owned: list[dict[str, Any]] = field(default_factory=list)

    def put(self, body: bytes) -> tuple[int, Any]:
        intent = json.loads(body)
        self.intents.append(intent)
        if self.answer is not None:
            return self.answer(intent)
        return self.accept(intent)

    def accept(self, intent: dict[str, Any], **others: dict[str, Any]) -> tuple[int, Any]:
        """Return the contract's answer; ``others`` replaces the status of ends by side, e.g. ``a={...}``."""
        if self.stored is not None and intent["generation"] < self.stored["generation"]:
            return problem(
                409, "old-generation", held=self.stored["generation"], generation=intent["generation"]
            )
        text = json.dumps(intent, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        self.stored = {"generation": intent["generation"], "sha256": sha256_of(text)}
        ends = [(end, "testing" if end.get("testing") else "verified") for end in intent["present"]] + [
            (end, "removed") for end in intent["removed"]
        ]
        return 200, {
            "schema": 1,
            "router": self.router,
            "generation": intent["generation"],
            "applied": True,
            "ends": [
                {name: end[name] for name in ("vll", "end", "revision")}
                | {"status": status, "policed": False, "reason": None}
                | others.get(end["end"], {})
                for end, status in ends
            ],
            "quarantined": [],
        }

    def plan(self, body: bytes) -> tuple[int, Any]:
        """Return one operation per missing end; quarantine owned objects that the intent does not name."""
        intent = json.loads(body)
        named = {(end["vll"], end["end"]) for end in intent["present"] + intent["removed"]}
        there = {(each["vll"], each["end"]) for each in self.owned}
        missing = [end for end in intent["present"] if (end["vll"], end["end"]) not in there]
        operations = [
            {"n": n, "stage": "create", "vll": end["vll"], "end": end["end"], "message": "create_subif",
             "cli": f"create sub-interfaces {end['access']['interface']}", "why": "it is missing"}
            for n, end in enumerate(missing, start=1)
        ]  # fmt: skip
        return 200, {
            "schema": 1,
            "router": self.router,
            "generation": intent["generation"],
            "operations": operations,
            "ends": [],
            "quarantined": [
                {name: each[name] for name in ("vll", "end", "interface")}
                for each in self.owned
                if (each["vll"], each["end"]) not in named
            ],
        }

    def state(self) -> dict[str, Any]:
        return {"schema": 1, "router": self.router, "held": self.stored, "owned": self.owned}


def problem(status: int, code: str, **members: Any) -> tuple[int, Any]:
    return status, {
        "type": f"urn:longline:error:{code}",
        "title": code,
        "status": status,
        "detail": "",
        **members,
    }


def end_status(status: str, code: str, *, retval: int | None = None) -> dict[str, Any]:
    """Return an end's status with its reason, as the contract writes them."""
    reason = {"code": code, "message": "a sentence", "object": None, "retval": retval, "vpp_message": None}
    return {"status": status, "reason": reason}


@contextmanager
def serving(
    agent: StandInAgent, *, pki: Path, identity: str | None = None, port: int = 0
) -> Iterator[StandInAgent]:
    """Serve with the certificate ``identity`` (default: the router's own); port 0 selects a free port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    name = identity or f"router-{agent.router}"
    context.load_cert_chain(pki / f"{name}.pem", pki / f"{name}.key")
    context.load_verify_locations(pki / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Otherwise the body waits 40 ms for the acknowledgement of the headers.
        disable_nagle_algorithm = True

        def do_PUT(self) -> None:
            self._send(*agent.put(self.rfile.read(int(self.headers["Content-Length"]))))

        def do_POST(self) -> None:
            self._send(*agent.plan(self.rfile.read(int(self.headers["Content-Length"]))))

        def do_GET(self) -> None:
            self._send(200, agent.state())

        def _send(self, status: int, content: Any) -> None:
            body = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing: a failing test shows the requests that the agent received."""

    open_connections: list[ssl.SSLSocket] = []

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def finish_request(self, request: Any, client_address: Any) -> None:
            # Serve each connection in a thread, so that a stuck handshake does not block other clients.
            try:
                wrapped = context.wrap_socket(request, server_side=True)
            except OSError:
                return
            open_connections.append(wrapped)
            super().finish_request(wrapped, client_address)
            wrapped.close()

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Ignore the error: some tests use clients that hang up."""

    server = Server(("127.0.0.1", port), Handler)
    agent.url = f"https://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield agent
    finally:
        server.shutdown()
        server.server_close()
        for connection in open_connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        thread.join()


@contextmanager
def silent_port() -> Iterator[str]:
    """Return the URL of a server that accepts connections and never responds."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"https://127.0.0.1:{listening.getsockname()[1]}"
