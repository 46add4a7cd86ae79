"""The kinds of imports, in the order in which a network is built: a kind refers only to kinds before it."""

from portal.imports.kinds.customers import Customers
from portal.imports.kinds.kind import Kind
from portal.imports.kinds.lines import Lines
from portal.imports.kinds.links import Links
from portal.imports.kinds.ports import Ports
from portal.imports.kinds.routers import Routers
from portal.imports.kinds.sites import Sites
from portal.imports.kinds.users import Users

KINDS: dict[str, Kind] = {
    kind.slug: kind for kind in (Sites(), Routers(), Links(), Customers(), Ports(), Users(), Lines())
}
