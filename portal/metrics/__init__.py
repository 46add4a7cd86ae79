"""What Prometheus asks the portal; see docs/observability.md for the doors and the names."""
