"""Restores of backups: from pg_dump, and from archived WAL to the second before a mistake."""
