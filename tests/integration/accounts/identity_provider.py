"""An OpenID Connect provider on loopback that says about its visitor what a test tells it to."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class IdentityProvider:
    """``claims`` is what the userinfo endpoint answers (OpenID Connect Core 1.0, 5.3)."""

    url: str
    claims: dict[str, Any]


@contextmanager
def identity_provider(**claims: Any) -> Iterator[IdentityProvider]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answers = {
                "/.well-known/openid-configuration": {
                    "issuer": provider.url,
                    "authorization_endpoint": f"{provider.url}/authorize",
                    "token_endpoint": f"{provider.url}/token",
                    "userinfo_endpoint": f"{provider.url}/userinfo",
                    "jwks_uri": f"{provider.url}/jwks",
                },
                "/userinfo": provider.claims,
            }
            self._answer(answers[self.path])

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self._answer({"access_token": "for-tests", "token_type": "Bearer"})

        def _answer(self, body: dict[str, Any]) -> None:
            text = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *unused: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider = IdentityProvider(url=f"http://127.0.0.1:{server.server_port}", claims=claims)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
