"""Read and change a VPP without its agent, with agent/cmd/vpptestctl."""

import json
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from devstack.folders import BUILD

OURS = "longline:"


class VppRefused(Exception):
    """VPP has refused a request or has not responded."""


@dataclass(frozen=True)
class VppConfig:
    """The configuration of one VPP at one time. The members are described in agent/cmd/vpptestctl."""

    shown: dict[str, Any]

    @cached_property
    def interfaces(self) -> dict[int, dict[str, Any]]:
        return {each["index"]: each for each in self.shown["interfaces"]}

    @cached_property
    def connects(self) -> dict[int, int]:
        return {each["from"]: each["to"] for each in self.shown["connects"]}

    def named(self, name: str) -> dict[str, Any] | None:
        return next((each for each in self.interfaces.values() if each["name"] == name), None)

    def tagged(self, vll: str | None = None) -> list[dict[str, Any]]:
        """Return the interfaces that carry a tag of ``vll``, or of any VLL if ``vll`` is None."""
        mark = f"{OURS}{vll}:" if vll else OURS
        return [each for each in self.interfaces.values() if each["tag"].startswith(mark)]


@dataclass(frozen=True)
class VppTestctl:
    socket: Path

    def config(self) -> VppConfig:
        return VppConfig(json.loads(self._do("show")))

    def add_sub(self, port: str, vlan: int) -> str:
        """Add a sub-interface that belongs to no line. Return its name."""
        self._do("add-sub", port, str(vlan))
        return f"{port}.{vlan}"

    def delete_sub(self, name: str) -> None:
        self._do("delete-sub", name)

    def add_gre(self, local: str, remote: str, number: int) -> str:
        """Add a tunnel for Ethernet over GRE. Return its name. (`vppctl create gre tunnel` may
        refuse IPv6.)
        """
        self._do("add-gre", local, remote, str(number))
        return f"gre{number}"

    def delete_tunnel(self, name: str) -> None:
        self._do("delete-tunnel", name)

    def untag(self, name: str) -> None:
        """Remove the tag of an interface, as `vppctl clear interface tag` does."""
        self._do("untag", name)

    def down(self, name: str) -> None:
        self._do("down", name)

    def up(self, name: str) -> None:
        self._do("up", name)

    def disconnect(self, name: str) -> None:
        self._do("disconnect", name)

    def _do(self, *what: str) -> str:
        done = subprocess.run(
            [str(BUILD / "vpptestctl"), str(self.socket), *what],
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        if done.returncode:
            raise VppRefused(f"{' '.join(what)}: {done.stderr.strip()}")
        return done.stdout
