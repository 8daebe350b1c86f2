"""Flows as people draw them, and what each of their nodes has to put out."""
