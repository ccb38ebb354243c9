"""A shelf: events -> text for people and machines."""
