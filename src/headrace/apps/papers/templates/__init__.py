"""Templates that ship with Headrace: examples to copy and change."""
