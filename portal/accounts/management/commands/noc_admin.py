"""The first account, which makes all others: ``manage.py noc_admin nina nina@example.net``."""

import getpass
import sys
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from portal.accounts.models import User


class Command(BaseCommand):
    help = (
        "Makes a NOC admin. The password is asked for, or read from standard input where that is no terminal."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")
        parser.add_argument("email")

    def handle(self, *args: Any, **options: Any) -> None:
        user = User(username=options["username"], email=options["email"], noc_role=User.NocRole.NOC_ADMIN)
        password = getpass.getpass("Password: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
        try:
            validate_password(password, user)
            user.set_password(password)
            user.full_clean()
        except ValidationError as error:
            raise CommandError("; ".join(error.messages)) from error
        user.save()
        self.stdout.write(f"made the NOC admin {user.username}")
