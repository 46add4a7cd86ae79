"""Accept a restored database as correct, and continue from the generations of the agents."""

import getpass
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.core import clock
from portal.inventory.models import Router
from provisioning.agent_reply_decoder import Owned
from provisioning.intent_generations import (
    End,
    ReconcilePreview,
    StateUnavailable,
    generation_adopt,
    reconcile_preview,
)


class Command(BaseCommand):
    help = (
        "Sends intents again to routers whose agents are ahead of a restored database. With --dry-run: only"
        " list the lines that the database lacks (they stay on the routers, quarantined), and the changes"
        " that the routers would make."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("routers", nargs="*", metavar="router", help="the name of a router")
        parser.add_argument("--all", action="store_true", help="all routers with an agent")
        parser.add_argument("--dry-run", action="store_true", help="query the agents and change nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        routers = self._routers(options["routers"], all_of_them=options["all"])
        if options["dry_run"]:
            previews: list[ReconcilePreview] = []
            silent = self._each(routers, lambda router: previews.append(self._show(router)))
            self._sum_up(previews)
        else:
            silent = self._each(routers, self._reconcile)
        if silent:
            raise CommandError("\n".join(silent))

    def _routers(self, names: list[str], *, all_of_them: bool) -> list[Router]:
        if bool(names) == all_of_them:
            raise CommandError("give the names of routers, or --all")
        with_agents = Router.objects.exclude(agent_url="").order_by("name")
        if all_of_them:
            return list(with_agents)
        found = {router.name: router for router in with_agents.filter(name__in=names)}
        for name in names:
            if name not in found:
                raise CommandError(f"no router with an agent is named {name}")
        return [found[name] for name in names]

    def _each(self, routers: list[Router], do: Callable[[Router], None]) -> list[str]:
        """Call ``do`` for each router, and return the errors of routers that do not report their state.

        Such a router does not stop the work on the other routers.
        """
        silent = []
        for router in routers:
            try:
                do(router)
            except StateUnavailable as error:
                silent.append(str(error))
        return silent

    def _reconcile(self, router: Router) -> None:
        generation = generation_adopt(router_id=router.pk, actor=getpass.getuser(), now=clock.now())
        self.stdout.write(f"{router.name} continues from generation {generation}")

    def _show(self, router: Router) -> ReconcilePreview:
        preview = reconcile_preview(router)
        ahead = "ahead of" if preview.is_behind else "not ahead of"
        self.stdout.write(
            f"{router.name} has generation {preview.stored}, {ahead} the database's {preview.generation}"
        )
        for what, end, why in _rows(preview):
            self.stdout.write(f"  {what:<11} {end[0]} {end[1]}{f': {why}' if why else ''}")
        return preview

    def _sum_up(self, previews: list[ReconcilePreview]) -> None:
        lines = {end[0] for preview in previews for end in preview.quarantined}
        ends = Counter(what for preview in previews for what, _, _ in _rows(preview))
        self.stdout.write(
            f"routers queried: {len(previews)}; lines quarantined: {len(lines)};"
            f" ends to make: {ends['make']}, to change: {ends['change']},"
            f" to remove: {ends['remove']}, hindered: {ends['hindered']}"
        )


def _rows(preview: ReconcilePreview) -> Iterator[tuple[str, End, str]]:
    for end, owned in preview.quarantined.items():
        yield "quarantined", end, ", ".join(map(_interface, owned))
    for what, ends in (("make", preview.made), ("change", preview.changed), ("remove", preview.removed)):
        for end in ends:
            yield what, end, ""
    for end, why in preview.hindered.items():
        yield "hindered", end, why


def _interface(owned: Owned) -> str:
    if owned.key is None:
        return owned.interface
    return f"{owned.interface} ({'GRE key' if owned.kind == 'gre' else 'VNI'} {owned.key})"
