"""The NOC's word after a restore: the database is right, count on from what the agent holds."""

import getpass
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.core import clock
from portal.inventory.models import Router
from provisioning.adopt_agent_generation import CannotAsk, generation_adopt


class Command(BaseCommand):
    help = "Lets a router whose agent is ahead of a restored database be converged again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("router", help="its name")

    def handle(self, *args: Any, **options: Any) -> None:
        router = Router.objects.exclude(agent_url="").filter(name=options["router"]).first()
        if router is None:
            raise CommandError(f"no router with an agent is named {options['router']}")
        try:
            generation = generation_adopt(router_id=router.pk, actor=getpass.getuser(), now=clock.now())
        except CannotAsk as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{router.name} counts on from generation {generation}")
