"""Tables that people write in spreadsheets: read, checked and carried out."""
