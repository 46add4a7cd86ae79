"""The private stack under .run/ that the demo, the tests and the lab use."""
