"""Topics of open pages, and the triggers that report committed changes."""
