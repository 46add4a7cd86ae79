"""Imports of spreadsheets: checked first, then taken in by batches that are whole or not there (ADR 45)."""
