"""Collectors: one module per subject. Each yields metric families for a scrape."""
