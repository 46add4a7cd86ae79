"""The kinds of imports, in the order in which a network is built: a kind refers only to kinds before it."""

from portal.imports.kinds.inventory import CUSTOMERS, LINKS, PORTS, ROUTERS, SITES
from portal.imports.kinds.kind import Kind
from portal.imports.kinds.lines import Lines
from portal.imports.kinds.users import Users

KINDS: dict[str, Kind] = {
    kind.slug: kind for kind in (SITES, ROUTERS, LINKS, CUSTOMERS, PORTS, Users(), Lines())
}
