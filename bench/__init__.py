"""`make bench`: one line per figure, `bench <name> <value> <unit>`."""
