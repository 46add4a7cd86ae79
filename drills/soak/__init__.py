"""The whole product under a steady load for hours. It shows which figures grow, and how certain this is."""
