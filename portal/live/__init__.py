"""Which open pages a committed change concerns: topics, and the triggers that tell of changes."""
