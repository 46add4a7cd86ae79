"""The Unix sockets that an agent connects to, behind which stands a VPP or the stand-in."""

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
    """`name` is "vpp <version>" or "vppsim"; it may be known only once a router was started."""

    @property
    def name(self) -> str: ...

    def start(self, router: Router) -> Sockets: ...
