"""Take the pictures in docs/screens again. Run `make demo`, then `python -m devstack.screens`.

The program orders some lines in a demo that has just started, and waits for the figures of these lines. Then
it takes a picture of each main page, as a customer and as the NOC. It needs the dependencies of the tests:
Playwright and Debian's Chromium.
"""

import base64
import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from devstack.client import Client
from devstack.folders import ROOT, RUN
from devstack.isp import ALPINE_DAIRY

FOLDER = ROOT / "docs" / "screens"
# Seconds. After this time, the graph has more than a few points.
FIGURES_S = 240
TALLEST_PX = 1500
QUALITY = 0.75
WIDE, NARROW = 1280, 360
# Chromium can write WebP only from a canvas.
_AS_WEBP = """
async ([png, quality]) => {
  const image = new Image();
  image.src = `data:image/png;base64,${png}`;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height);
  canvas.getContext("2d").drawImage(image, 0, 0);
  const blob = await canvas.convertToBlob({ type: "image/webp", quality });
  const bytes = new Uint8Array(await blob.arrayBuffer());
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}
"""


def main() -> None:
    demo = json.loads((RUN / "demo.json").read_text())
    with sync_playwright() as playwright:
        shell = shutil.which("chromium-headless-shell")
        browser = playwright.chromium.launch(executable_path=shell, args=["--no-sandbox"])
        ordered = _order(demo, browser)
        time.sleep(FIGURES_S)
        _take_all(demo, browser, ordered)
        browser.close()


def _order(demo: dict[str, Any], browser: Browser) -> str:
    """Order some lines. Return the id of the order that waits for approval."""
    customer = Client(demo["url"], demo["customer_token"])
    with _reader(browser, demo, "customer") as page:
        _open(page, demo, "/orders/new/")
        ports = page.locator("#id_a_end-port option").evaluate_all(
            "all => all.map(each => [each.text, each.value])"
        )

    def end(port: str, outer: Any, inner: int | None = None) -> dict[str, Any]:
        [found] = [value for text, value in ports if f" {port} " in f" {text} "]
        tagging = "dot1q" if inner is None else "qinq"
        return {"port": int(found), "tagging": tagging, "outer_vlan": outer, "inner_vlan": inner}

    def line(name: str, a: dict[str, Any], z: dict[str, Any], mbit: int, transport: str = "auto") -> str:
        return customer.order(
            description=name, a_end=a, z_end=z, cir_bps=mbit * 10**6, transport=transport, svc_mtu=1500
        ).order

    rhino1, rhino2, hippo1, hippo2 = (f"{r}:host-cust{n}" for r in ("rhino", "hippo") for n in (1, 2))
    for order in (
        line("Cheese cellar backup", end(rhino2, 20), end(hippo2, 20), 500),
        line("Creamery cameras", end(rhino2, 30), end(hippo2, 31), 50),
        line("Lab over IPv6", end(rhino1, 200), end(hippo1, 200), 20, "vxlan6"),
        line("Milk meters", end(rhino2, 50, 7), end(hippo2, 50, 7), 10),
    ):
        customer.wait_completed(order, timeout_s=60)
    with _reader(browser, demo, "noc") as page:
        _open(page, demo, "/noc/customers/")
        page.get_by_role("link", name=f"Change {ALPINE_DAIRY}").click()
        page.locator("#id_approve_up_to_bps").fill("1000")
        page.get_by_role("button", name="Save").click()
    return line("Second data centre", end(rhino2, 70), end(hippo2, 70), 1500)


def _take_all(demo: dict[str, Any], browser: Browser, pending_order: str) -> None:
    line, approval = f"/vlls/{demo['vll']}/", f"/noc/orders/{pending_order}/"
    for name, who, width, dark, address, do in (
        ("overview", "customer", WIDE, False, "/", _no_action),
        ("overview-narrow", "customer", NARROW, True, "/", _no_action),
        ("menu-narrow", "noc", NARROW, False, "/noc/", _open_menu),
        ("order", "customer", WIDE, False, "/orders/new/", _fill),
        ("order-narrow", "customer", NARROW, True, "/orders/new/", _fill),
        ("order-refused", "customer", WIDE, False, "/orders/new/", _request_too_much),
        ("line", "customer", WIDE, False, line, _see_figures),
        ("change", "customer", WIDE, False, f"{line}change/", _change),
        ("alarms", "noc", WIDE, False, "/noc/", _no_action),
        ("approval", "noc", WIDE, False, approval, _see_plan),
        ("map", "noc", WIDE, False, "/noc/map/", _no_action),
        ("map-dark", "noc", WIDE, True, "/noc/map/", _no_action),
        ("router", "noc", WIDE, False, "/routers/", _see_router),
        ("audit", "noc", WIDE, False, "/noc/audit/?by=alice", _no_action),
    ):
        with _reader(browser, demo, who, width=width, dark=dark) as page:
            _open(page, demo, address)
            do(page)
            _take(page, name)


@contextmanager
def _reader(
    browser: Browser, demo: dict[str, Any], who: str, *, width: int = WIDE, dark: bool = False
) -> Iterator[Page]:
    context = browser.new_context(
        viewport={"width": width, "height": 800},
        color_scheme="dark" if dark else "light",
        timezone_id="Europe/Zurich",
    )
    page, login = context.new_page(), demo[f"{who}_login"]
    _open(page, demo, "/login/")
    page.get_by_label("User name").fill(login["username"])
    page.get_by_label("Password").fill(login["password"])
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Virtual leased lines").wait_for()
    yield page
    context.close()


def _open(page: Page, demo: dict[str, Any], address: str) -> None:
    page.goto(f"{demo['url']}{address}")


def _take(page: Page, name: str) -> None:
    page.wait_for_timeout(1000)
    width, height = page.evaluate("[innerWidth, document.documentElement.scrollHeight]")
    png = page.screenshot(
        full_page=True, clip={"x": 0, "y": 0, "width": width, "height": min(height, TALLEST_PX)}
    )
    page.goto("about:blank")
    webp = page.evaluate(_AS_WEBP, [base64.b64encode(png).decode(), QUALITY])
    (FOLDER / f"{name}.webp").write_bytes(base64.b64decode(webp))
    print(f"{name}.webp")


def _no_action(page: Page) -> None:
    pass


def _open_menu(page: Page) -> None:
    page.get_by_role("button", name="Menu").click()


def _fill(page: Page) -> None:
    for side, port in (("A end", "rhino:host-cust2"), ("Z end", "hippo:host-cust2")):
        end = page.get_by_role("group", name=side)
        select = end.get_by_label("Port")
        value = select.locator("option", has_text=port).get_attribute("value")
        select.select_option(value)
        end.get_by_label("Outer VLAN").fill("any")
    page.get_by_label("Bandwidth", exact=True).fill("250")
    page.get_by_label("Name or reference").fill("Cheese by night")
    page.get_by_text("This line is possible.").wait_for()


def _request_too_much(page: Page) -> None:
    _fill(page)
    page.get_by_label("Largest packet (MTU)").fill("9100")
    page.get_by_text("Not possible as it is").wait_for()


def _change(page: Page) -> None:
    page.get_by_label("Bandwidth", exact=True).fill("400")
    page.get_by_text("This change is possible.").wait_for()


def _see_figures(page: Page) -> None:
    page.locator("#throughput canvas").first.wait_for()


def _see_plan(page: Page) -> None:
    page.get_by_role("button", name="Approve this order").wait_for(timeout=60_000)


def _see_router(page: Page) -> None:
    page.get_by_role("link", name="rhino", exact=True).click()
    page.get_by_role("heading", name="rhino", level=1).wait_for()


if __name__ == "__main__":
    main()
