"""The size and the duration of the simulation, from the environment."""

import os
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Size:
    """The size of the network and the durations of the phases.

    * ``peers``: the lines with their A end on a router lead to this number of other routers. A router has
      lines to at most twice as many routers, because it also has Z ends.
    * ``phase_s``: the duration of each phase before the measurement. The first phase has only reports. The
      second phase adds orders, and the third phase adds open pages.
    * ``settle_s``: the maximum time until the effects of the first reports have been processed.
    * ``warm_s``: the time for which all loads run before the measurement, to fill caches.
    """

    routers: int
    lines: int
    minutes: float
    pages: int
    orders_per_s: float
    peers: int
    # The fraction of a router's reports that contain a changed link of a customer.
    news: float
    phase_s: float
    settle_s: float
    warm_s: float

    @property
    def customers(self) -> int:
        return min(100, self.routers)

    @classmethod
    def read(cls) -> Self:
        """Read the variables ROUTERS, LINES, MINUTES, PAGES, ORDERS, PEERS, NEWS, PHASE_S, SETTLE_S and
        WARM_S.

        Raises ValueError.
        """
        size = cls(
            routers=int(os.environ.get("ROUTERS", "1000")),
            lines=int(os.environ.get("LINES", "100000")),
            minutes=float(os.environ.get("MINUTES", "30")),
            pages=int(os.environ.get("PAGES", "200")),
            orders_per_s=float(os.environ.get("ORDERS", "5")),
            peers=int(os.environ.get("PEERS", "5")),
            news=float(os.environ.get("NEWS", "0.01")),
            phase_s=float(os.environ.get("PHASE_S", "45")),
            settle_s=float(os.environ.get("SETTLE_S", "900")),
            warm_s=float(os.environ.get("WARM_S", "0")),
        )
        if not 3 <= size.routers <= 65_000:
            raise ValueError(f"ROUTERS is {size.routers}: a ring takes 3 to 65000")
        if size.lines % size.routers or not 0 < size.lines // size.routers <= 1000:
            raise ValueError(
                f"LINES is {size.lines}: name a multiple of ROUTERS ({size.routers}), at most 1000 for each"
            )
        return size

    def __str__(self) -> str:
        return (
            f"{self.routers} routers, {self.lines} lines, {self.orders_per_s:g} orders/s,"
            f" {self.pages} open pages, {self.minutes:g} minutes"
        )
