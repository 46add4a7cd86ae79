"""An app with migrations of every kind that an upgrade meets, for databases of their own."""
