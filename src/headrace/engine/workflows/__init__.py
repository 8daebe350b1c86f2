"""Runs of workflows: what their jobs do, at either level, and what becomes of those that the store ended."""
