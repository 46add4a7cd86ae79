"""Adopt many found lines in one request, from the list's filters or from a file: all of them or none."""

import re
from typing import Any
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse

from portal.accounts.models import Customer, User
from portal.allocation.models import BandwidthBooking, PortVlanLease, VniLease
from portal.core import clock
from portal.inventory.models import ObservedCircuit, ObservedInterface, ObservedRouter, Port
from portal.inventory.reported_observation import CircuitReport
from portal.vll.models import Order, Vll
from portal.web.noc.adoption.adoption_forms import of_vppcfg
from tests.integration.allocation.test_adoption import store
from tests.integration.api.test_api_v1 import client
from tests.integration.circuits import attachment, circuit, tunnel
from tests.integration.isp import Isp
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db
SEVERAL = "/noc/found-lines/adopt/"
ORDERED = {"svc_mtu": 1500, "cir_bps": 10**7}


@pytest.fixture
def lines(isp: Isp) -> list[int]:
    """Return the ids of three found lines: VLANs 300 to 302 of rhino and hippo, VNIs 7000 to 7002."""
    ObservedRouter.objects.update(reported_at=clock.now(), vpp_connected=True, adoption="allowed")
    return found_on(isp, "host-cust1")


def found_on(isp: Isp, port: str, **otherwise: Any) -> list[int]:
    for here, there in (("rhino", "hippo"), ("hippo", "rhino")):
        store(isp, here, *(half(here, there, n, port, **otherwise) for n in range(3)))
    return list(
        ObservedCircuit.objects.filter(router=isp.routers["rhino"])
        .order_by("pk")
        .values_list("pk", flat=True)
    )


def half(here: str, there: str, n: int, port: str, **otherwise: Any) -> CircuitReport:
    return circuit(attachment(port, 300 + n, **otherwise), tunnel(here, there, 7000 + n))


def adopt(user: User, ids: list[int], **more: Any) -> HttpResponse:
    document = {"lines": [{"found_line": each, **ORDERED} for each in ids], **more}
    return client(user).post("/api/v1/found-lines/adopt", document, content_type="application/json")  # type: ignore[return-value]


def page(user: User, step: str, ids: list[int], **fields: Any) -> HttpResponse:
    """Post as the page does. Fields of a line have the line's id as prefix in ``fields``."""
    rows = {f"{each}-take": "on" for each in ids} | {f"{each}-svc_mtu": "1500" for each in ids}
    sent = {"step": step, "line": ids, "cir_bps": "10", **rows, **fields}
    return signed_in(user).post(SEVERAL, sent)  # type: ignore[return-value]


def read(user: User, content: str | bytes, name: str = "lines.csv", **fields: str) -> str:
    """Return the page's text and the values of its fields."""
    file = SimpleUploadedFile(name, content if isinstance(content, bytes) else content.encode())
    response = signed_in(user).post(SEVERAL, {"step": "file", "file": file, **fields})
    values = re.findall(r'value="([^"]*)"', response.content.decode())
    return " ".join([text(response), *values, ""])


def nothing_is_booked() -> bool:
    return not any(each.objects.exists() for each in (Order, Vll, VniLease, BandwidthBooking, PortVlanLease))


class TestApi:
    def test_all_lines_are_ordered(self, lines: list[int], nina: User, dairy: Customer) -> None:
        response = adopt(nina, lines)
        assert response.status_code == 202
        outcomes = response.json()["lines"]
        assert [each["found_line"] for each in outcomes] == lines
        assert {each["customer"] for each in outcomes} == {dairy.name}
        assert {Order.objects.get(pk=each["order"]).vll_id for each in outcomes} == set(
            Vll.objects.values_list("pk", flat=True)
        )
        assert set(Vll.objects.values_list("vni", flat=True)) == {7000, 7001, 7002}

    def test_dry_run_shows_differences_and_writes_nothing(self, lines: list[int], nina: User) -> None:
        response = adopt(nina, lines, dry_run=True)
        assert response.status_code == 200
        first = response.json()["lines"][0]
        assert (first["order"], first["vll"], first["refusal"]) == (None, None, None)
        assert [each["code"] for each in first["differences"]] == ["limited"]
        assert "10 Mbit/s" in first["differences"][0]["sentence"]
        assert nothing_is_booked()

    def test_one_refusal_orders_no_line(self, lines: list[int], nina: User) -> None:
        VniLease.objects.create(vni=7001, owner=uuid4(), leased_at=clock.now())
        response = adopt(nina, lines)
        assert response.status_code == 422
        problem = response.json()
        assert problem["type"].endswith("#adoptions-refused")
        [error] = problem["errors"]
        assert (error["field"], error["code"]) == ("lines.1", "tunnel-key-taken")
        assert not Order.objects.exists()

    def test_same_line_twice_conflicts_with_itself(self, lines: list[int], nina: User) -> None:
        response = adopt(nina, [lines[0], lines[0]], dry_run=True)
        assert [each["refusal"] and each["refusal"]["code"] for each in response.json()["lines"]] == [
            None,
            "vlan-taken",
        ]

    def test_lines_together_cannot_overbook_a_port(self, lines: list[int], nina: User, isp: Isp) -> None:
        Port.objects.update(bookable_bps=25 * 10**6, oversubscription_percent=None)
        refused = [each["refusal"] for each in adopt(nina, lines, dry_run=True).json()["lines"]]
        assert [bool(each) for each in refused] == [False, False, True]
        assert nothing_is_booked()

    def test_errors_name_their_line(self, lines: list[int], nina: User) -> None:
        document = {"lines": [{"found_line": lines[0], **ORDERED}, {"found_line": lines[1], "svc_mtu": "x"}]}
        response = client(nina).post("/api/v1/found-lines/adopt", document, content_type="application/json")
        assert response.status_code == 422
        assert {each["field"] for each in response.json()["errors"]} == {"lines.1.svc_mtu", "lines.1.cir_bps"}

    def test_more_lines_than_the_limit_are_refused(self, nina: User) -> None:
        assert adopt(nina, list(range(101))).status_code == 422
        assert adopt(nina, []).status_code == 422

    def test_other_users_may_not_adopt(self, lines: list[int], nora: User, alice: User) -> None:
        assert adopt(nora, lines).status_code == 403
        assert adopt(alice, lines).status_code == 403


class TestInterfacesWithoutAPort:
    """The NOC names a customer, and the interfaces become ports of that customer."""

    @pytest.fixture
    def at_new_ports(self, isp: Isp, lines: list[int]) -> list[int]:
        for router in ("rhino", "hippo"):
            ObservedInterface.objects.update_or_create(
                router=isp.routers[router],
                name="host-new",
                defaults={"admin_up": True, "link_up": True, "speed_bps": 10**10, "ip_mtu": 9000},
            )
        return found_on(isp, "host-new")

    def test_interfaces_become_ports(self, at_new_ports: list[int], nina: User, dairy: Customer) -> None:
        document = {
            "lines": [{"found_line": each, "customer": dairy.name, **ORDERED} for each in at_new_ports]
        }
        checked = client(nina).post(
            "/api/v1/found-lines/adopt", document | {"dry_run": True}, content_type="application/json"
        )
        codes = [each["code"] for each in checked.json()["lines"][0]["differences"]]
        assert codes == ["port_made", "port_made", "limited"]
        assert not Port.objects.filter(interface="host-new").exists()
        response = client(nina).post("/api/v1/found-lines/adopt", document, content_type="application/json")
        assert response.status_code == 202
        ports = Port.objects.filter(interface="host-new")
        assert [(each.customer, each.speed_bps, each.max_frame) for each in ports] == [
            (dairy, 10**10, 9022),
            (dairy, 10**10, 9022),
        ]

    def test_customer_and_speed_are_required(
        self, at_new_ports: list[int], nina: User, dairy: Customer
    ) -> None:
        assert adopt(nina, at_new_ports[:1]).json()["errors"][0]["code"] == "found-port-unknown"
        ObservedInterface.objects.filter(name="host-new").update(speed_bps=None)
        document = {"lines": [{"found_line": at_new_ports[0], "customer": dairy.name, **ORDERED}]}
        response = client(nina).post("/api/v1/found-lines/adopt", document, content_type="application/json")
        assert response.json()["errors"][0]["code"] == "found-port-unknown"
        assert not Port.objects.filter(interface="host-new").exists()

    def test_port_without_customer_gets_the_customer(
        self, lines: list[int], nina: User, bakery: Customer
    ) -> None:
        Port.objects.filter(interface="host-cust1").update(customer=None)
        document = {"lines": [{"found_line": lines[0], "customer": bakery.name, **ORDERED}]}
        response = client(nina).post("/api/v1/found-lines/adopt", document, content_type="application/json")
        assert [each["code"] for each in response.json()["lines"][0]["differences"]] == [
            "port_given",
            "port_given",
            "limited",
        ]
        assert Vll.objects.get().customer == bakery

    def test_port_of_another_customer_keeps_its_customer(
        self, lines: list[int], nina: User, bakery: Customer
    ) -> None:
        document = {"lines": [{"found_line": lines[0], "customer": bakery.name, **ORDERED}]}
        response = client(nina).post("/api/v1/found-lines/adopt", document, content_type="application/json")
        assert response.json()["errors"][0]["code"] == "found-port-of-another"
        assert nothing_is_booked()


class TestPage:
    def test_page_shows_the_lines_that_match_the_filters(
        self, isp: Isp, lines: list[int], nina: User
    ) -> None:
        shown = text(signed_in(nina).get(f"{SEVERAL}?q=host-cust1.301"))
        assert "VNI 7001" in shown
        assert "VNI 7000" not in shown
        store(isp, "hippo")
        assert "No line can be taken over" in text(signed_in(nina).get(SEVERAL))

    def test_check_shows_changes_and_orders_nothing(self, lines: list[int], nina: User) -> None:
        response = page(nina, "check", lines)
        assert response.status_code == 200
        shown = text(response)
        assert "3 lines can be taken over like this" in shown
        assert shown.count("10 Mbit/s are booked at once") == 3
        assert nothing_is_booked()

    def test_value_of_a_line_overrides_the_value_for_all_lines(self, lines: list[int], nina: User) -> None:
        fields = {f"{lines[1]}-cir_bps": "20", f"{lines[1]}-description": "Milk", f"{lines[2]}-take": ""}
        assert page(nina, "adopt", lines, **fields).status_code == 302
        assert sorted(Vll.objects.values_list("cir_bps", "description")) == [(10**7, ""), (2 * 10**7, "Milk")]

    def test_one_refused_or_invalid_line_orders_no_line(self, lines: list[int], nina: User) -> None:
        response = page(nina, "adopt", lines, **{f"{lines[0]}-cir_bps": "1000000"})
        assert response.status_code == 422
        assert "One of these lines cannot be taken over" in text(response)
        response = page(nina, "adopt", lines, **{f"{lines[0]}-cir_bps": "much"})
        assert response.status_code == 422
        response = page(nina, "adopt", lines, cir_bps="")
        assert text(response).count("Enter a bandwidth, here or for all.") == 3
        assert nothing_is_booked()

    def test_page_reports_lines_that_have_disappeared(self, isp: Isp, lines: list[int], nina: User) -> None:
        ObservedCircuit.objects.filter(pk=lines[0]).delete()
        response = page(nina, "check", lines)
        assert "1 line has changed" in text(response)

    def test_other_users_see_no_page(self, lines: list[int], nora: User, alice: User) -> None:
        for user in (nora, alice):
            assert signed_in(user).get(SEVERAL).status_code in (403, 404)
            assert signed_in(user).get(f"{SEVERAL}sheet.csv").status_code in (403, 404)


class TestFile:
    def sheet(self, user: User) -> str:
        return b"".join(signed_in(user).get(f"{SEVERAL}sheet.csv")).decode()  # type: ignore[call-overload]

    def test_downloaded_sheet_can_be_uploaded_again(
        self, lines: list[int], nina: User, dairy: Customer
    ) -> None:
        sheet = self.sheet(nina)
        assert sheet.count("\n") == 4
        filled = "\r\n".join(each + "20000000" if each.endswith(",") else each for each in sheet.splitlines())
        shown = read(nina, filled)
        assert "3 lines can be taken over like this" in shown
        assert shown.count("20 Mbit/s are booked at once") == 3

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
    @pytest.mark.parametrize("delimiter", [",", ";", "\t"])
    def test_either_end_identifies_a_line(
        self, lines: list[int], nina: User, encoding: str, delimiter: str
    ) -> None:
        rows = [
            ["Router", "Interface", "Description", "cir_bps"],
            ["hippo", "host-cust1.301", "Käse", "10000000"],
            [""] * 4,
        ]
        shown = read(nina, "\r\n".join(map(delimiter.join, rows)).encode(encoding))
        assert "VNI 7001" in shown
        assert "VNI 7000" not in shown
        assert "Käse" in shown

    @pytest.mark.parametrize(
        ("content", "sentence"),
        [
            ("", "The column “router” is missing"),
            ("router,interface,colour\n", "There is no column “colour”"),
            ("router,router,interface\n", "The file has the column “router” twice"),
            ("router,interface\nrhino,host-cust1.300,x\n", "Line 2 of the file has more cells"),
            ("router,interface,description\nrhino,host-cust1.300,=1+1\n", "begins like a formula"),
            ('router,interface\nrhino,"host-cust1.300\n', "a quotation mark is not closed"),
            (
                "router,interface\nrhino,caf\xe9\n".encode("latin-1"),
                "Line 2 of the file is neither UTF-8 nor UTF-16",
            ),
            (b"router,interface\nrhino,a\0b\n", "Line 2 of the file is neither UTF-8 nor UTF-16"),
            ("router,interface\nrhino,host-cust1.999\n", "Line 2: no line that can be taken over has an end"),
            ("router,interface\nrhino,host-cust1.300\nhippo,host-cust1.300\n", "is listed twice"),
            ("router,interface\n" + "rhino,x\n" * 101, "more than 100 rows"),
            ("x" * (8 * 1024 * 1024 + 1), "larger than 8388608 bytes"),
        ],
        ids=lambda value: value if isinstance(value, str) and len(value) < 60 else "",
    )
    def test_invalid_table_is_refused_with_a_reason(
        self, lines: list[int], nina: User, content: str | bytes, sentence: str
    ) -> None:
        assert sentence in read(nina, content)
        assert nothing_is_booked()

    def test_invalid_cell_is_reported_at_its_field(self, lines: list[int], nina: User) -> None:
        shown = read(nina, "router,interface,cir_bps\nrhino,host-cust1.300,fast\n")
        assert " fast " in shown
        assert "Enter a number" in shown

    @pytest.mark.parametrize(
        ("cell", "field"),
        [("50M", " 50 "), ("1,000", " 1,000 bit/s "), ("1.5", " 1.5 bit/s "), ("2.000", " 2.000 bit/s ")],
    )
    def test_cells_use_bits_and_form_fields_use_megabits(
        self, lines: list[int], nina: User, cell: str, field: str
    ) -> None:
        assert field in read(nina, f'router,interface,cir_bps\nrhino,host-cust1.300,"{cell}"\n')

    def test_missing_file_is_reported(self, nina: User) -> None:
        assert "Choose a file first" in text(signed_in(nina).post(SEVERAL, {"step": "file"}))

    def test_vppcfg_descriptions_become_line_names(self, lines: list[int], nina: User) -> None:
        file = (
            "interfaces:\n  host-cust1:\n    description: 'Port'\n    sub-interfaces:\n"
            "      301:\n        description: 'Cust: Miller'\n      309:\n        description: 'other'\n"
        )
        shown = read(nina, file, "hippo.yaml", router="hippo")
        assert "Cust: Miller" in shown
        assert "VNI 7001" in shown
        assert "VNI 7000" not in shown

    def test_description_comes_from_the_interface_of_the_named_router(self, isp: Isp, nina: User) -> None:
        """Both routers have sub-interfaces with these names, and the lines connect them crosswise."""
        ObservedRouter.objects.update(reported_at=clock.now(), vpp_connected=True, adoption="allowed")
        crosswise = {"rhino": {301: 7101, 302: 7102}, "hippo": {302: 7101, 301: 7102}}
        for here, there in (("rhino", "hippo"), ("hippo", "rhino")):
            halves = crosswise[here].items()
            store(
                isp, here, *(circuit(attachment("host-cust1", v), tunnel(here, there, k)) for v, k in halves)
            )
        file = (
            "interfaces: {host-cust1: {sub-interfaces: {301: {description: one}, 302: {description: two}}}}"
        )
        for router, vlans in crosswise.items():
            read_lines = of_vppcfg(file.encode(), router=router)
            names = {line.key: fields["description"] for line, fields in read_lines.lines}
            assert names == {key: {301: "one", 302: "two"}[vlan] for vlan, key in vlans.items()}

    @pytest.mark.parametrize("file", ["a: [", "- 1", "interfaces: 7", "&a [*a]", "\x00"])
    def test_invalid_vppcfg_file_is_refused_with_a_reason(self, nina: User, file: str) -> None:
        assert "This is not a file of vppcfg" in read(nina, file, "hippo.yaml", router="hippo")


@pytest.mark.parametrize(
    ("filters", "keys"),
    [("standing=complete", 3), ("standing=one_sided", 0), ("odd=shut", 0), ("q=CUST1.301", 1)],
)
def test_list_can_be_filtered(lines: list[int], nora: User, filters: str, keys: int) -> None:
    assert len(client(nora).get(f"/api/v1/found-lines?{filters}").json()["results"]) == keys


def test_foreign_policer_prevents_adoption(isp: Isp, lines: list[int], nina: User) -> None:
    ids = found_on(isp, "host-cust1", policed=True)
    errors = adopt(nina, ids[:1]).json()["errors"]
    assert errors[0]["code"] == "found-line-odd"
    assert "foreign policer" in errors[0]["detail"]
