"""A storm: orders and faults that a seed determines, and then a check that the product kept its promises."""
