"""Private installations of the product for the demo, the tests and the lab. Their files are under .run/."""
