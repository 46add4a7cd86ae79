"""The certificate authority at hand: ``pki init``, then ``pki issue`` for the portal and each router."""

from argparse import ArgumentParser
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import Certificate
from django.core.management.base import BaseCommand, CommandError

from portal.core import clock
from portal.inventory.identity import PORTAL_URI, identity_of, is_router_name, router_uri
from portal.inventory.models import Router, RouterCertificate
from provisioning import pki


class Command(BaseCommand):
    help = "Creates the CA (init) and issues certificates for the portal and for routers (issue)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        init = actions.add_parser("init", help="make ca.pem and ca.key")
        init.add_argument("--dir", type=Path, required=True)
        issue = actions.add_parser("issue", help="make a certificate and its key")
        issue.add_argument("--dir", type=Path, required=True)
        issue.add_argument("--role", choices=["portal", "router"], required=True)
        issue.add_argument("--name", help="the router's name")
        issue.add_argument("--dns", action="append", default=[], help="a host name of the server")
        issue.add_argument("--ip", action="append", default=[], type=ip_address, help="an address of it")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["action"] == "init":
                pki.authority_create(options["dir"], now=clock.now())
                self.stdout.write(f"made {options['dir'] / 'ca.pem'}")
            else:
                self._issue(options)
        except FileExistsError as error:
            raise CommandError(f"{error} exists; a certificate in use is never replaced") from error
        except FileNotFoundError as error:
            raise CommandError(f"{error.filename} is missing; run `pki init` first") from error
        except pki.NotAnAuthority as error:
            raise CommandError(f"ca.key in {error} does not belong to ca.pem") from error

    def _issue(self, options: dict[str, Any]) -> None:
        file_name, uri, router = self._subject(options["role"], options["name"])
        certificate = pki.certificate_issue(
            options["dir"],
            authority=pki.authority_load(options["dir"]),
            file_name=file_name,
            uri=uri,
            dns=options["dns"],
            addresses=options["ip"],
            now=clock.now(),
        )
        self.stdout.write(f"made {options['dir'] / file_name}.pem for {uri}")
        if router is not None:
            serial = _register(router, certificate)
            self.stdout.write(f"registered serial {serial} for {router.name}")
        elif options["role"] == "router":
            self.stderr.write(f"no router is named {options['name']}: its reports will be refused")

    def _subject(self, role: str, name: str | None) -> tuple[str, str, Router | None]:
        if (role == "router") != (name is not None):
            raise CommandError("--role router needs --name, and --role portal takes none")
        if name is None:
            return "portal", PORTAL_URI, None
        if not is_router_name(name):
            raise CommandError(f"{name!r} is no router name: [a-z0-9-]{{1,63}}")
        return f"router-{name}", router_uri(name), Router.objects.filter(name=name).first()


def _register(router: Router, certificate: Certificate) -> str:
    identity = identity_of(certificate.public_bytes(Encoding.DER))
    RouterCertificate.objects.create(
        router=router,
        serial=identity.serial,
        fingerprint=identity.fingerprint,
        issued_at=certificate.not_valid_before_utc,
        expires_at=certificate.not_valid_after_utc,
    )
    return identity.serial
