"""The NOC's word after a restore: the database is right, count on from what the agent holds."""

import getpass
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.core import clock
from portal.inventory.models import Router
from provisioning.agent_client import Unreachable
from provisioning.jobs import agent_of
from provisioning.reconcile import generation_reconcile


class Command(BaseCommand):
    help = "Lets a router whose agent is ahead of a restored database be converged again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("router", help="its name")

    def handle(self, *args: Any, **options: Any) -> None:
        router = Router.objects.exclude(agent_url="").filter(name=options["router"]).first()
        if router is None:
            raise CommandError(f"no router with an agent is named {options['router']}")
        with agent_of(router) as agent:
            held = agent.held()
        if isinstance(held, Unreachable):
            raise CommandError(f"{router.name} cannot be asked what it holds: {held.error}")
        generation = generation_reconcile(
            router=router, held=held.generation, actor=getpass.getuser(), now=clock.now()
        )
        self.stdout.write(f"{router.name} counts on from generation {generation}")
