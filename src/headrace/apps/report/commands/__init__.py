"""The commands of `headrace report`, one file each, and what they have in common."""
