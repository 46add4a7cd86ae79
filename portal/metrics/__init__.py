"""The portal's metrics for Prometheus; see docs/observability.md for the addresses and the names."""
