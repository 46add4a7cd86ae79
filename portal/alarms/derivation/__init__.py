"""What is wrong now, read from rows: a file for each part of the portal that may have something to say."""
