"""Derivation of alarms from rows of the database. Each module covers one part of the portal."""
