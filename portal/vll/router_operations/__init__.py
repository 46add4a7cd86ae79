"""What the NOC does to a router, and with it to every line that ends there."""
