"""Feeds of what happens to batches and runs: whoever follows one makes it grow."""
