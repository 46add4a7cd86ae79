"""A person at a browser, and all errors and warnings that the browser reports meanwhile."""

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
# The browser reports each refused request. Tests refuse some on purpose; every other complaint counts.
_REFUSED = "Failed to load resource: the server responded with a status of 4"


def german(text: str) -> str:
    """Return the German translation. It is mostly longer, so a page that fits in German fits in English."""
    with translation.override("de"):
        return translation.gettext(text)


class Appearance(NamedTuple):
    """The colours, and the window's width in CSS pixels."""

    color_scheme: Literal["light", "dark"]
    width: int


LIGHT_AND_WIDE = Appearance("light", 1280)
DARK_AND_NARROW = Appearance("dark", 320)


@dataclass
class Reader:
    """A browser page. ``complaints`` has console errors, warnings, policy reports and uncaught errors."""

    page: Page
    url: str
    complaints: list[str] = field(default_factory=list)
    _checked_sheets: list[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(_REFUSED):
            self.complaints.append(f"{message.type}: {message.text}")

    def open(self, path: str) -> None:
        self.page.goto(f"{self.url}{path}")

    def open_and_read(self, path: str) -> str:
        """Open a page and return it as the server sent it. Not for pages that a script leaves."""
        answer = self.page.goto(f"{self.url}{path}")
        assert answer is not None
        return answer.text()

    def stop_polls(self) -> None:
        """Disable timers of more than 0.4 s, from the next page on."""
        self.page.add_init_script(
            "const soon = setTimeout;"
            "window.setTimeout = (f, ms, ...rest) => ms > 400 ? 0 : soon(f, ms, ...rest);"
        )

    def intercept(self, address: str, trigger: Callable[[], object]) -> Route:
        """Return the route of the request that ``trigger`` causes. It waits until the test continues it."""
        kept = list[Route]()
        self.page.route(address, lambda route: kept.append(route))
        with self.page.expect_request(address):
            trigger()
        while not kept:
            self.page.wait_for_timeout(10)
        return kept[0]

    def source(self, path: str) -> str:
        """Return the page that the server would send this reader now."""
        return self.page.request.get(f"{self.url}{path}").text()

    def set_appearance(self, appearance: Appearance) -> None:
        """Set the colours immediately, and the window's width."""
        self.page.emulate_media(color_scheme=appearance.color_scheme, reduced_motion="reduce")
        self.page.set_viewport_size({"width": appearance.width, "height": 800})

    def sign_in(self, username: str, password: str) -> None:
        """Sign in with the form, as people do."""
        self.open("/login/")
        self.page.get_by_label("User name").fill(username)
        self.page.get_by_label("Password").fill(password)
        self.page.get_by_role("button", name="Sign in").click()
        title = "Virtual leased lines"
        self.page.get_by_role("heading", name=re.compile(f"{title}|{german(title)}")).wait_for()

    def be_signed_in(self, username: str, *, language: str = "") -> None:
        """Sign in without a page, and set the language if one is given. It applies from the next page on.

        It works where the portal runs in this process, for tests of pages other than the sign-in page.
        """
        if language:
            User.objects.filter(username=username).update(language=language)
        session = session_of(User.objects.get(username=username))
        cookie = {"name": settings.SESSION_COOKIE_NAME, "value": session, "url": self.url}
        self.page.context.add_cookies([cookie])

    def accessibility_violations(self) -> list[str]:
        """Return the violations of WCAG 2.2 A and AA and of axe-core's best practices, a line for each rule.

        Only css-orientation-lock needs axe to load the style sheets, so each set of them is loaded once.
        """
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE)
        sheets = self.page.evaluate("Array.from(document.styleSheets, (sheet) => sheet.href)")
        found: list[dict[str, Any]] = self.page.evaluate(
            "async (preload) => (await axe.run({ resultTypes: ['violations'], preload })).violations",
            sheets not in self._checked_sheets,
        )
        self._checked_sheets.append(sheets)
        return [f"{rule['id']}: {[node['target'] for node in rule['nodes']]}" for rule in found]

    def overflow(self) -> int:
        """Return by how many CSS pixels the page is wider than its window."""
        width: int = self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        return width
