"""The whole product for hours under a steady load: what grows, and how sure that is."""
