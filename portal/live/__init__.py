"""The topics that open pages follow, and the triggers that report committed changes."""
