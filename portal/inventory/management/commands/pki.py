"""Manage the certificate authority: ``pki init``, then ``pki issue`` for the portal and each router."""

from argparse import ArgumentParser
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography.x509 import load_pem_x509_certificate
from django.core.management.base import BaseCommand, CommandError

from portal.core import clock
from portal.inventory import pki
from portal.inventory.certificates import (
    AlreadyRevoked,
    NotThisRouters,
    certificate_register,
    certificates_revoke,
    without_authorities,
    without_certificate_of,
)
from portal.inventory.models import Router
from portal.inventory.pki import PORTAL_URI, is_router_name, router_uri

_NAMED = 10


class Command(BaseCommand):
    help = (
        "Creates the CA (init), issues certificates (issue), accepts them (register), revokes them (revoke),"
        " and lets another CA take over (rollover)."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        init = actions.add_parser("init", help="create ca.pem and ca.key")
        init.add_argument("--dir", type=Path, required=True)
        issue = actions.add_parser(
            "issue", help="create a certificate and its key; register the certificate of a router"
        )
        issue.add_argument("--dir", type=Path, required=True)
        issue.add_argument("--role", choices=["portal", "router"], required=True)
        issue.add_argument("--name", help="the router's name")
        issue.add_argument("--dns", action="append", default=[], help="a host name of the server")
        issue.add_argument(
            "--ip", action="append", default=[], type=ip_address, help="an address of the server"
        )
        register = actions.add_parser(
            "register", help="accept a certificate that was issued before the router existed"
        )
        register.add_argument("--dir", type=Path, required=True)
        register.add_argument("--name", required=True)
        rollover = actions.add_parser("rollover", help="let another CA take over, in three steps")
        rollover.add_argument("step", choices=["begin", "switch", "finish"])
        rollover.add_argument("--dir", type=Path, required=True)
        rollover.add_argument("--dns", action="append", default=[], help="a host name of the server (switch)")
        rollover.add_argument(
            "--ip", action="append", default=[], type=ip_address, help="an address of the server"
        )
        rollover.add_argument(
            "--force", action="store_true", help="continue although some agents are not ready"
        )
        revoke = actions.add_parser("revoke", help="refuse a router's certificates from now on")
        revoke.add_argument("--name", required=True)
        revoke.add_argument(
            "--serial", help="only the certificate with this serial number (hex); otherwise all"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            getattr(self, f"_{options['action']}")(options)
        except FileExistsError as error:
            raise CommandError(f"{error} exists; the command never replaces a certificate in use") from error
        except FileNotFoundError as error:
            raise CommandError(f"{error.filename} is missing") from error
        except pki.NotAnAuthority as error:
            raise CommandError(f"ca.key in {error} does not belong to ca.pem") from error
        except pki.NoRollover as error:
            raise CommandError(f"this step of the rollover is not possible now: {error}") from error
        except NotThisRouters as error:
            raise CommandError(f"the certificate belongs to another router: {error}") from error
        except AlreadyRevoked as error:
            raise CommandError(
                f"serial {error} is revoked permanently; remove its files and issue a new certificate"
            ) from error

    def _init(self, options: dict[str, Any]) -> None:
        pki.authority_create(options["dir"], now=clock.now())
        self.stdout.write(f"created {options['dir'] / 'ca.pem'}")

    def _issue(self, options: dict[str, Any]) -> None:
        file_name, uri = _subject(options["role"], options["name"])
        # The portal's own certificate is not recorded: it can be issued before a database exists.
        is_routers = options["role"] == "router"
        router = Router.objects.filter(name=options["name"]).first() if is_routers else None
        pki.certificate_issue(
            options["dir"],
            authority=pki.authority_load(options["dir"]),
            file_name=file_name,
            uri=uri,
            dns=options["dns"],
            addresses=options["ip"],
            now=clock.now(),
        )
        self.stdout.write(f"created {options['dir'] / file_name}.pem for {uri}")
        if router is not None:
            self._register(options)
        elif is_routers:
            self.stderr.write(f"no router is named {options['name']} yet: register the certificate later")

    def _register(self, options: dict[str, Any]) -> None:
        pem = (options["dir"] / f"router-{options['name']}.pem").read_bytes()
        row = certificate_register(
            router=_router(options["name"]), certificate=load_pem_x509_certificate(pem), now=clock.now()
        )
        self.stdout.write(f"registered serial {row.serial} for {row.router.name}")

    def _rollover(self, options: dict[str, Any]) -> None:
        getattr(self, f"_rollover_{options['step']}")(options)

    def _rollover_begin(self, options: dict[str, Any]) -> None:
        pki.rollover_begin(options["dir"], now=clock.now())
        self.stdout.write("the portal trusts the next CA, which does not sign yet")

    def _rollover_switch(self, options: dict[str, Any]) -> None:
        """Switch to the next CA. Without ``--force``, refuse while an agent does not trust the next CA yet.

        Such an agent would no longer accept the portal.
        """
        self._require(without_authorities(options["dir"]), "do not trust the next CA yet", options)
        pki.rollover_switch(
            options["dir"], uri=PORTAL_URI, dns=options["dns"], addresses=options["ip"], now=clock.now()
        )
        self.stdout.write("the next CA signs from now on; agents renew their certificates automatically")

    def _rollover_finish(self, options: dict[str, Any]) -> None:
        """Stop trusting the old CA. Without ``--force``, refuse while an agent uses a certificate that the
        old CA issued.

        The portal would no longer accept such an agent.
        """
        lacking = without_certificate_of(pki.authority_load(options["dir"]))
        self._require(lacking, "have not used a certificate of the new CA yet", options)
        pki.rollover_finish(options["dir"])
        self.stdout.write("the portal no longer trusts the old CA")

    def _require(self, names: list[str], lack: str, options: dict[str, Any]) -> None:
        if names and not options["force"]:
            shown = ", ".join(names[:_NAMED]) + (" ..." if len(names) > _NAMED else "")
            raise CommandError(
                f"{len(names)} routers {lack}: {shown}. Agents check every hour; --force does not wait"
            )

    def _revoke(self, options: dict[str, Any]) -> None:
        router = _router(options["name"])
        serials = certificates_revoke(router=router, serial=options["serial"], now=clock.now())
        if not serials:
            raise CommandError(f"{router.name} has no such valid certificate")
        self.stdout.write(f"revoked {', '.join(serials)} of {router.name}")


def _subject(role: str, name: str | None) -> tuple[str, str]:
    """Return (file name, URI name) of the certificate."""
    if (role == "router") != (name is not None):
        raise CommandError("--role router needs --name; --role portal has no --name")
    if name is None:
        return "portal", PORTAL_URI
    if not is_router_name(name):
        raise CommandError(f"{name!r} is not a router name: [a-z0-9-]{{1,63}}")
    return f"router-{name}", router_uri(name)


def _router(name: str) -> Router:
    router = Router.objects.filter(name=name).first()
    if router is None:
        raise CommandError(f"no router is named {name}")
    return router
