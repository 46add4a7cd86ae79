"""Create objects in a NetBox through its REST API."""

from typing import Any

import pynetbox

_PER_REQUEST = 100


class NetboxWriter:
    """A writer that remembers the id of each object that it has created: ``writer.id("rhino:bb0")``."""

    def __init__(self, url: str, token: str) -> None:
        self.api = pynetbox.api(url, token=token)
        self.api.http_session.trust_env = False
        self._ids: dict[str, int] = {}

    def id(self, name: str) -> int:
        return self._ids[name]

    def make(self, endpoint: Any, called: str, **values: Any) -> int:
        return self.make_all(endpoint, {called: values})[0]

    def make_all(self, endpoint: Any, rows: dict[str, dict[str, Any]]) -> list[int]:
        """Create objects, a hundred per request. ``rows``: objects by name. Raises RequestError."""
        made: list[int] = []
        values = list(rows.values())
        for at in range(0, len(values), _PER_REQUEST):
            made += [row.id for row in endpoint.create(values[at : at + _PER_REQUEST])]
        self._ids |= dict(zip(rows, made, strict=True))
        return made

    def change(self, endpoint: Any, called: str, **values: Any) -> None:
        """Change an object, as a person does in NetBox."""
        endpoint.update([{"id": self._ids[called], **values}])

    def interfaces(self, rows: dict[str, dict[str, Any]]) -> None:
        """Create interfaces by ``router:name``. The default is 10 Gbit/s and an MTU of 9000."""
        common = {"type": "10gbase-x-sfpp", "mtu": 9000}
        requested = {}
        for called, values in rows.items():
            router, name = called.split(":")
            requested[called] = {**common, "device": self._ids[router], "name": name, **values}
        self.make_all(self.api.dcim.interfaces, requested)

    def cables(self, *pairs: tuple[str, str]) -> None:
        def ends(called: str) -> list[dict[str, Any]]:
            return [{"object_type": "dcim.interface", "object_id": self._ids[called]}]

        rows = {f"{a}-{z}": {"a_terminations": ends(a), "b_terminations": ends(z)} for a, z in pairs}
        self.make_all(
            self.api.dcim.cables, {name: {"status": "connected", **row} for name, row in rows.items()}
        )

    def addresses(self, *pairs: tuple[str, str]) -> None:
        """Create addresses on the loopbacks of routers, from pairs (router, address)."""
        on = {"assigned_object_type": "dcim.interface"}
        self.make_all(
            self.api.ipam.ip_addresses,
            {
                address: {**on, "address": address, "assigned_object_id": self._ids[f"{router}:loop0"]}
                for router, address in pairs
            },
        )
