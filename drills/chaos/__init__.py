"""A storm of orders and faults, decided by a seed, and a check that the product kept its promises."""
