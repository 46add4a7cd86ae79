"""Dataplanes: a VPP or the stand-in. An agent connects to their Unix sockets."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from devstack.isp import Router


@dataclass(frozen=True, slots=True)
class Sockets:
    api: Path
    stats: Path
    cli: Path


class Dataplane(Protocol):
    """A dataplane. `name` is "vpp <version>" or "vppsim". The version may be unknown until the first router
    was started.
    """

    @property
    def name(self) -> str: ...

    def start(self, router: Router) -> Sockets: ...
