"""What Prometheus asks the portal; see docs/observability.md for the addresses and the names."""
