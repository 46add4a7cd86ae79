"""`manage.py noc_admin`: the first account, which makes all others."""

from io import StringIO

import pytest
from django.contrib.auth import authenticate
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from portal.accounts.models import User

pytestmark = pytest.mark.django_db

PASSWORD = "four words and a comma,"


def noc_admin(monkeypatch: pytest.MonkeyPatch, username: str, email: str, typed: str) -> str:
    """The output of the command, with ``typed`` on its standard input."""
    monkeypatch.setattr("sys.stdin", StringIO(typed))
    out = StringIO()
    call_command("noc_admin", username, email, stdout=out, stderr=out)
    return out.getvalue()


def test_the_first_account_signs_in_and_runs_the_noc(monkeypatch: pytest.MonkeyPatch, client: Client) -> None:
    said = noc_admin(monkeypatch, "nina", "nina@example.net", f"{PASSWORD}\n")
    assert said == "created the NOC admin nina\n"
    nina = User.objects.get()
    assert (nina.username, nina.email, nina.noc_role) == ("nina", "nina@example.net", User.NocRole.NOC_ADMIN)
    assert authenticate(username="nina", password=PASSWORD) == nina
    client.force_login(nina)
    assert client.get(reverse("web:noc")).status_code == 200


def test_the_password_is_neither_printed_nor_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    assert PASSWORD not in noc_admin(monkeypatch, "nina", "nina@example.net", PASSWORD)
    assert PASSWORD not in User.objects.get().password


def test_a_terminal_reads_the_password_without_echo(monkeypatch: pytest.MonkeyPatch) -> None:
    prompts = []

    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    def getpass(prompt: str) -> str:
        prompts.append(prompt)
        return PASSWORD

    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("getpass.getpass", getpass)
    call_command("noc_admin", "nina", "nina@example.net", stdout=StringIO())
    assert prompts == ["Password: "]
    assert User.objects.get().check_password(PASSWORD)


@pytest.mark.parametrize(
    ("username", "email", "typed", "why"),
    [
        ("nina", "nina@example.net", "short", "too short"),
        ("nina", "nina@example.net", "", "too short"),
        ("nina", "nina@example.net", "password1234", "too common"),
        ("nina.brunner.noc", "nina@example.net", "nina.brunner.noc", "too similar"),
        ("nina", "not an address", PASSWORD, "valid email"),
        ("ni na", "nina@example.net", PASSWORD, "valid username"),
    ],
)
def test_what_makes_no_account_is_refused(
    monkeypatch: pytest.MonkeyPatch, username: str, email: str, typed: str, why: str
) -> None:
    with pytest.raises(CommandError, match=why):
        noc_admin(monkeypatch, username, email, typed)
    assert not User.objects.exists()


def test_an_account_that_is_there_is_not_taken_over(monkeypatch: pytest.MonkeyPatch, nora: User) -> None:
    User.objects.filter(pk=nora.pk).update(email="nora@example.net")
    for username, email, why in (
        ("nora", "other@example.net", "nora is taken. Choose another name."),
        ("Nora", "other@example.net", "Nora is taken. Choose another name."),
        ("nina", "NORA@example.net", "NORA@example.net already belongs to an account."),
    ):
        with pytest.raises(CommandError) as refusal:
            noc_admin(monkeypatch, username, email, PASSWORD)
        assert str(refusal.value) == why
    nora.refresh_from_db()
    assert User.objects.get() == nora
    assert (nora.noc_role, nora.check_password("correct horse battery")) == ("noc", True)
