"""Batches of 10 to 50 generated details, in seconds: names of characters and places, items, organisations, skills."""
