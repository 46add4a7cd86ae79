"""Short ways to import in tests: call ``work`` to do the worker's part."""

from portal.accounts.models import User
from portal.core import clock
from portal.imports.errors import sentence
from portal.imports.kinds import KINDS
from portal.imports.kinds.kind import Actor
from portal.imports.models import Import, ImportRow
from portal.imports.operations import batch_run, import_begin
from portal.imports.tables import import_stage


def staged(user: User, kind: str, content: str | bytes, *, at_once: bool = False) -> Import:
    data = content if isinstance(content, bytes) else content.encode()
    return import_stage(
        kind=KINDS[kind],
        data=data,
        file_name=f"{kind}.csv",
        actor=Actor(user=user),
        now=clock.now(),
        at_once=at_once,
    )


def work(this: Import) -> Import:
    """Run all batches of the current phase, one after the other."""
    while batch_run(import_id=this.pk, now=clock.now()):
        pass
    this.refresh_from_db()
    return this


def checked(user: User, kind: str, content: str | bytes) -> Import:
    return work(staged(user, kind, content))


def begun(user: User, this: Import) -> Import:
    return import_begin(this=this, actor=Actor(user=user), now=clock.now())


def imported(user: User, kind: str, content: str | bytes) -> Import:
    """Return the import after its check and its run, as on the page."""
    return work(begun(user, checked(user, kind, content)))


def counts(this: Import) -> dict[str, int]:
    """Return the counts that are not 0."""
    named = {name: getattr(this, name) for name in ("new", "same", "refused", "made")}
    return {name: count for name, count in named.items() if count}


def refusals(this: Import) -> list[tuple[int, str, str]]:
    """Return line, column and code of each refusal."""
    return [(row.line, each["column"], each["code"]) for row in refused(this) for each in row.refusals]


def sentences(this: Import) -> list[str]:
    return [sentence(each) for row in refused(this) for each in row.refusals]


def refused(this: Import) -> list[ImportRow]:
    return list(this.rows.filter(state=ImportRow.State.REFUSED).order_by("line"))
