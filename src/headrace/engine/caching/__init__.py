"""Caches of an app: bounded, by name, and each answer that is missing is made once at a time."""
