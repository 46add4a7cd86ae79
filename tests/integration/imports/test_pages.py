"""The import pages: upload a table, review the result of the check, and import the rows."""

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from portal.accounts.models import User
from portal.imports.kinds import KINDS
from portal.imports.models import Import
from portal.inventory.models import Site
from tests.integration.imports.files import checked, work
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db
PATH = "/noc/imports/"
SITES = "name,latitude,longitude\nZürich,47.3769,8.5417\nBern,91,0\n# Basel,,\n"


def send(user: User, content: str | bytes = SITES, kind: str = "sites") -> Any:
    file = SimpleUploadedFile("my sites.csv", content if isinstance(content, bytes) else content.encode())
    return signed_in(user).post(f"{PATH}?kind={kind}", {"file": file})


def test_uploaded_file_creates_the_network(nora: User) -> None:
    answer = send(nora)
    this = Import.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, f"{PATH}{this.pk}/")
    browser = signed_in(nora)
    assert "0 of 2 rows" in text(browser.get(f"{PATH}{this.pk}/"))
    work(this)
    shown = text(browser.get(f"{PATH}{this.pk}/"))
    assert "Import one row" in shown
    assert "3 latitude 91.0 is not between -90 and 90." in shown
    assert "One row begins with “# ”" in shown
    assert not Site.objects.exists()
    browser.post(f"{PATH}{this.pk}/begin/")
    work(this)
    shown = text(browser.get(f"{PATH}{this.pk}/"))
    assert "Imported 1" in shown
    assert "Import one row" not in shown
    assert "hx-trigger" not in browser.get(f"{PATH}{this.pk}/").content.decode().partition('id="import"')[2]
    errors = b"".join(browser.get(f"{PATH}{this.pk}/errors.csv")).decode("utf-8-sig")  # type: ignore[call-overload]
    assert errors.splitlines()[1].startswith("Bern,91,0,3,")
    assert "my sites.csv" in text(browser.get(PATH))


@pytest.mark.parametrize("kind", list(KINDS))
def test_template_names_all_columns_and_cannot_be_imported_unedited(nina: User, kind: str) -> None:
    browser = signed_in(nina)
    template = b"".join(browser.get(f"{PATH}templates/{kind}.csv"))  # type: ignore[call-overload]
    header, example = template.decode("utf-8-sig").splitlines()
    assert header.split(",") == KINDS[kind].column_names
    assert example.startswith("# ")
    answer = send(nina, template, kind)
    assert answer.status_code == 422
    assert "The table has no rows" in text(answer)
    page = browser.get(f"{PATH}?kind={kind}")
    assert all(f"<code>{column.name}</code>" in page.content.decode() for column in KINDS[kind].columns)
    # The example is a readable row.
    cells = dict(zip(KINDS[kind].column_names, (each.example for each in KINDS[kind].columns), strict=True))
    assert KINDS[kind].read(cells)[1] == []


def test_unreadable_file_is_reported_and_not_stored(nora: User) -> None:
    answer = send(nora, "name\nZürich\n".encode("latin-1"))
    assert (answer.status_code, Import.objects.count()) == (422, 0)
    assert "Line 2 of the file is neither UTF-8 nor UTF-16" in text(answer)
    assert "Choose a file first." in text(signed_in(nora).post(PATH, {}))


def test_100_megabytes_are_refused_before_they_are_read(nora: User) -> None:
    answer = signed_in(nora).generic(
        "POST", PATH, b"", content_type="multipart/form-data; boundary=x", CONTENT_LENGTH=str(100 * 2**20)
    )
    assert answer.status_code == 413
    assert "Files of up to 8 MiB are read." in text(answer)


def test_only_noc_admins_import_users(nora: User, nina: User) -> None:
    assert signed_in(nora).get(f"{PATH}?kind=users").status_code == 403
    assert "Users" not in text(signed_in(nora).get(PATH)).partition("Recent imports")[0].partition("Sites")[2]
    assert signed_in(nina).get(f"{PATH}?kind=users").status_code == 200
    assert signed_in(nina).get(f"{PATH}?kind=planets").status_code == 404
    this = checked(nina, "users", "customer,email,role\nNobody Knows,dora@alpine.example,viewer\n")
    assert "Nobody Knows" in text(signed_in(nina).get(f"{PATH}{this.pk}/"))
    assert "Nobody Knows" not in text(signed_in(nora).get(f"{PATH}{this.pk}/"))
    assert signed_in(nora).get(f"{PATH}{this.pk}/errors.csv").status_code == 403
    assert signed_in(nora).post(f"{PATH}{this.pk}/cancel/").status_code == 403


def test_import_is_cancelled(nora: User) -> None:
    send(nora)
    this = Import.objects.get()
    signed_in(nora).post(f"{PATH}{this.pk}/cancel/")
    assert "Cancelled" in text(signed_in(nora).get(f"{PATH}{this.pk}/"))
    again = signed_in(nora).post(f"{PATH}{this.pk}/begin/", follow=True)
    assert "The import was cancelled" in text(again)


def test_page_works_without_facts_that_an_earlier_release_did_not_store(nora: User) -> None:
    this = checked(nora, "customers", "name\n" + "a" * 101 + "\n")
    row = this.rows.get()
    del row.refusals[0]["facts"]["length"]
    row.save()
    assert "The text has 101 characters." in text(signed_in(nora).get(f"{PATH}{this.pk}/"))
