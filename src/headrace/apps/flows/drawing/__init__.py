"""Flows as pictures: Mermaid text, and SVG that needs nothing else."""
