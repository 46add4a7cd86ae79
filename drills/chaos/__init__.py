"""A storm of orders and faults, decided by a seed; then whether what was promised stands."""
