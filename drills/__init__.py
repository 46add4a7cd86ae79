"""The whole system under stress: failovers, chaos, restores, a thousand routers. Each prints what it saw."""
