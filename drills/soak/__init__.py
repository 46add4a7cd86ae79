"""The whole product under a steady load for hours: which figures grow, and how certain that is."""
