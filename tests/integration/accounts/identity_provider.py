"""An OpenID Connect provider on loopback with claims that a test sets."""

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit


@dataclass
class IdentityProvider:
    """``claims`` is what the userinfo endpoint answers (OpenID Connect Core 1.0, 5.3).

    ``challenges``: by code, what the visitor who fetched it here has to prove to know (PKCE, RFC 7636).
    """

    url: str
    claims: dict[str, Any]
    challenges: dict[str, str] = field(default_factory=dict)


@contextmanager
def identity_provider(**claims: Any) -> Iterator[IdentityProvider]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.startswith("/authorize?"):
                return self._send_back(parse_qs(urlsplit(self.path).query))
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
            return self._answer(answers[self.path])

        def do_POST(self) -> None:
            sent = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            challenge = provider.challenges.pop(sent["code"][0], None)
            digest = hashlib.sha256(sent["code_verifier"][0].encode()).digest()
            if challenge not in (None, base64.urlsafe_b64encode(digest).rstrip(b"=").decode()):
                return self._answer({"error": "invalid_grant"}, status=400)
            return self._answer({"access_token": "for-tests", "token_type": "Bearer"})

        def _send_back(self, query: dict[str, list[str]]) -> None:
            """The visitor is known here and agrees."""
            code = f"code-{len(provider.challenges) + 1}"
            provider.challenges[code] = query["code_challenge"][0]
            back = urlencode({"code": code, "state": query["state"][0]})
            self.send_response(302)
            self.send_header("Location", f"{query['redirect_uri'][0]}?{back}")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def _answer(self, body: dict[str, Any], status: int = 200) -> None:
            text = json.dumps(body).encode()
            self.send_response(status)
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
