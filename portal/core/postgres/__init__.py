"""Django's backend for PostgreSQL, for servers that may fail over to a standby."""
