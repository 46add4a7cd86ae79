"""The order in which the portal writes lines to NetBox: a new line does not wait for a whole network."""

from collections.abc import Callable, Iterator
from unittest import mock

import pytest

from portal.accounts.models import User
from portal.core import clock
from portal.netbox_sync import line_export
from portal.netbox_sync.client import Client, Configuration, configuration
from portal.netbox_sync.line_export import Exporter, lines_to_check
from portal.netbox_sync.models import ExportedVll
from portal.vll.models import Vll
from tests.integration.isp import Isp
from tests.integration.orders import end, order

pytestmark = pytest.mark.django_db
_ENDS = (("a", "rhino"), ("z", "hippo"))


class Recorder(Exporter):
    """Record which lines would be written together; ``meanwhile`` runs during the first write."""

    def __init__(self, at: Configuration, meanwhile: Callable[[], object]) -> None:
        super().__init__(mock.create_autospec(Client), at, now=clock.now())
        self.written: list[set[str]] = []
        self._meanwhile = meanwhile

    def _exported(self, lines: list[Vll]) -> Iterator[ExportedVll]:
        self.written.append({line.description for line in lines})
        if len(self.written) == 1:
            self._meanwhile()
        for line in lines:
            noted = getattr(line, "netbox", None) or ExportedVll(vll=line)
            noted.revision, noted.lifecycle = line.revision, line.lifecycle
            yield noted


@pytest.fixture
def ordered(isp: Isp, alice: User) -> Callable[[str, int], Vll]:
    def new(name: str, vlan: int) -> Vll:
        ends = {f"{side}_end": end(isp, f"{router}:host-cust1", outer=vlan) for side, router in _ENDS}
        return order(isp, alice, description=name, cir_bps=10**6, **ends).vll

    return new


@pytest.fixture
def recorder(
    configured: Callable[..., None], ordered: Callable[[str, int], Vll], monkeypatch: pytest.MonkeyPatch
) -> Recorder:
    """A batch has two lines; a new line is ordered while the first batch is written."""
    configured("http://netbox.invalid")
    at = configuration()
    assert at is not None
    monkeypatch.setattr(line_export, "AT_ONCE", 2)
    monkeypatch.setattr(line_export, "CHECK_EVERY_S", 0.0)
    return Recorder(at, lambda: ordered("now", 4000))


@pytest.fixture
def exported_lines(ordered: Callable[[str, int], Vll]) -> list[str]:
    """Create lines that NetBox has in their newest version, in the order of the check."""
    for vlan in range(100, 104):
        vll = ordered(f"old {vlan}", vlan)
        ExportedVll.objects.create(vll=vll, revision=vll.revision, lifecycle=vll.lifecycle)
    return list(Vll.objects.order_by("pk").values_list("description", flat=True))


def test_line_ordered_during_a_large_export_is_written_next(
    recorder: Recorder, ordered: Callable[[str, int], Vll]
) -> None:
    for vlan in range(100, 104):
        ordered(f"new {vlan}", vlan)
    progress_reports: list[tuple[str, int, int | None]] = []
    recorder.export(lines_to_check(), lambda *progress: progress_reports.append(progress))
    assert "now" in recorder.written[1]
    assert sorted(name for some in recorder.written for name in some) == [
        *("new 100", "new 101", "new 102", "new 103"),
        "now",
    ]
    assert [progress_reports[0], progress_reports[-1]] == [("lines", 1, 4), ("lines", 5, 5)]


def test_check_of_all_lines_and_a_new_line_do_not_delay_each_other(
    recorder: Recorder, exported_lines: list[str]
) -> None:
    recorder.export(lines_to_check(), lambda *progress: None)
    first, second, third, fourth = exported_lines
    assert recorder.written == [{first, second}, {"now", third}, {fourth}]


def test_due_lines_are_queried_at_intervals(
    recorder: Recorder, exported_lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_export, "CHECK_EVERY_S", 3600.0)
    recorder.export(lines_to_check(), lambda *progress: None)
    first, second, third, fourth = exported_lines
    assert recorder.written == [{first, second}, {third, fourth}]
