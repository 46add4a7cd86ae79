"""A storm of orders and faults that a seed determines, and a check that the product kept its promises."""
