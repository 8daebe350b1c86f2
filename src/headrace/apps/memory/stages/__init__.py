"""The stages of memory: check a buffer, prepare its flushes, work on each, store what it came to, and sweep."""
