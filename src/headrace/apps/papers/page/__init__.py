"""The results as one HTML page that needs nothing else: every value beside its place in its document."""
