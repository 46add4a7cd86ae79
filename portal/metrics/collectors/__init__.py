"""One module for each thing that is counted; each gives the metric families that a scrape shows of it."""
