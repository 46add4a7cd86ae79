"""Imports of spreadsheets. All rows are checked first. Then they are imported in batches (ADR 45).

A batch succeeds or fails as a whole.
"""
