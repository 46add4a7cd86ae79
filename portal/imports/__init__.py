"""Imports of spreadsheets: checked first, then imported in batches that succeed or fail as a whole
(ADR 45).
"""
