"""Create the first account, a NOC admin: ``manage.py noc_admin nina nina@example.net``.

The NOC admin can create all other accounts. The command also restores access if all NOC admins have lost
their second factors.
"""

import getpass
import sys
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from portal.accounts.invitations import account_make
from portal.accounts.models import User
from portal.core.errors import DomainError


class Command(BaseCommand):
    help = (
        "Creates a NOC admin. Prompts for the password, or reads it from standard input without a terminal."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")
        parser.add_argument("email")

    def handle(self, *args: Any, **options: Any) -> None:
        username, email, role = options["username"], options["email"], User.NocRole.NOC_ADMIN
        user = User(username=username, email=email, noc_role=role)
        password = getpass.getpass("Password: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
        try:
            validate_password(password, user)
            user.set_password(password)
            user.clean_fields()
            user = account_make(username=username, email=email, password=password, noc_role=role)
        except ValidationError as error:
            raise CommandError("; ".join(error.messages)) from error
        except DomainError as error:
            raise CommandError(error.sentence) from error
        self.stdout.write(f"created the NOC admin {user.username}")
