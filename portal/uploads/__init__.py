"""Files that people send, read as far as their form goes: tables from spreadsheets, and vppcfg's YAML."""
