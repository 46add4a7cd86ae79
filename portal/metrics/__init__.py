"""The portal's metrics for Prometheus; see docs/operate/observability.md for the addresses and the names."""
