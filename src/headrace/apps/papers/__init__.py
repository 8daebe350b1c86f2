"""Structured extraction from a folder of papers: one template, N documents, one table with located quotes."""
