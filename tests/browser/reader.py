"""A person at a browser: what they open, and everything that the browser complains about meanwhile."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from django.conf import settings
from django.utils import translation
from playwright.sync_api import ConsoleMessage, Page, Route

from portal.accounts.models import User
from tests.integration.web_pages.browser import session_of

AXE = (Path(__file__).parent / "vendor" / "axe-core-4.14.1" / "axe.min.js").read_text()
# What an address that is meant to be refused makes the browser say; every other complaint counts.
_REFUSED = "Failed to load resource: the server responded with a status of 4"


def german(text: str) -> str:
    """As it stands on a German page: most words are longer there, so that what fits in German fits."""
    with translation.override("de"):
        return translation.gettext(text)


class Look(NamedTuple):
    """Colours, and the window's width in CSS pixels."""

    color_scheme: Literal["light", "dark"]
    width: int


LIGHT_AND_WIDE = Look("light", 1280)
DARK_AND_NARROW = Look("dark", 320)


@dataclass
class Reader:
    """``complaints``: console errors and warnings, content policy reports among them, and uncaught errors."""

    page: Page
    url: str
    complaints: list[str] = field(default_factory=list)
    _sheets_looked_at: list[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(_REFUSED):
            self.complaints.append(f"{message.type}: {message.text}")

    def open(self, path: str) -> None:
        self.page.goto(f"{self.url}{path}")

    def open_and_read(self, path: str) -> str:
        """The page as the server sent it, before any script. Not for pages that a script leads away from."""
        answer = self.page.goto(f"{self.url}{path}")
        assert answer is not None
        return answer.text()

    def stop_polls(self) -> None:
        """From the next page on timers of more than 0.4 s never go off."""
        self.page.add_init_script(
            "const soon = setTimeout;"
            "window.setTimeout = (f, ms, ...rest) => ms > 400 ? 0 : soon(f, ms, ...rest);"
        )

    def held_back(self, address: str, ask: Callable[[], object]) -> Route:
        """The request for this address that ``ask`` makes; it waits until its route is told to go on."""
        kept = list[Route]()
        self.page.route(address, lambda route: kept.append(route))
        with self.page.expect_request(address):
            ask()
        while not kept:
            self.page.wait_for_timeout(10)
        return kept[0]

    def source(self, path: str) -> str:
        """What the server would send this reader now."""
        return self.page.request.get(f"{self.url}{path}").text()

    def look(self, look: Look) -> None:
        """From now on prefer these colours, at once, in a window of this width."""
        self.page.emulate_media(color_scheme=look.color_scheme, reduced_motion="reduce")
        self.page.set_viewport_size({"width": look.width, "height": 800})

    def sign_in(self, username: str, password: str) -> None:
        """By the form, as people do."""
        self.open("/login/")
        self.page.get_by_label("User name").fill(username)
        self.page.get_by_label("Password").fill(password)
        self.page.get_by_role("button", name="Sign in").click()
        title = "Virtual leased lines"
        self.page.get_by_role("heading", name=re.compile(f"{title}|{german(title)}")).wait_for()

    def be_signed_in(self, username: str, *, language: str = "") -> None:
        """From the next page on, without a page for it, and in ``language``, if one is named.

        Where the portal is of this process, and signing in is another test's.
        """
        if language:
            User.objects.filter(username=username).update(language=language)
        session = session_of(User.objects.get(username=username))
        cookie = {"name": settings.SESSION_COOKIE_NAME, "value": session, "url": self.url}
        self.page.context.add_cookies([cookie])

    def accessibility_violations(self) -> list[str]:
        """Violations of WCAG 2.2 A and AA and of axe-core's best practices, a line for each rule.

        Style sheets are loaded for css-orientation-lock alone, which looks at nothing else: once for the same
        ones.
        """
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE)
        sheets = self.page.evaluate("Array.from(document.styleSheets, (sheet) => sheet.href)")
        found: list[dict[str, Any]] = self.page.evaluate(
            "async (preload) => (await axe.run({ resultTypes: ['violations'], preload })).violations",
            sheets not in self._sheets_looked_at,
        )
        self._sheets_looked_at.append(sheets)
        return [f"{rule['id']}: {[node['target'] for node in rule['nodes']]}" for rule in found]

    def overflow(self) -> int:
        """By how many CSS pixels the page is wider than its window."""
        width: int = self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        return width
