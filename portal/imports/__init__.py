"""Imports of spreadsheets. First all rows are checked, then the rows are imported in batches (ADR 45).

The changes of a batch are committed together, or not at all.
"""
