"""Random operations on the stores: their rules, what has to hold between them, and two stores side by side."""
