"""The commands of `headrace details`, one file each, and what they have in common."""
