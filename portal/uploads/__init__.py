"""Uploaded files and their syntax: tables from spreadsheets, and vppcfg's YAML."""
