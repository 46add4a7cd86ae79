"""Derivation of alarms from rows: one file for each part of the portal."""
