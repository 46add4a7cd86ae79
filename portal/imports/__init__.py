"""Imports of spreadsheets. All rows are checked first. Then they are imported in batches (ADR 45).

The changes of a batch are committed together, or not at all.
"""
