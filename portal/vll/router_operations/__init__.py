"""The NOC's operations on a router, which affect every line that ends there."""
