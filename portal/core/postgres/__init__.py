"""Django's backend for PostgreSQL, for servers that may lose their place to a standby."""
