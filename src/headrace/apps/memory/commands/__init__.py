"""The commands of `headrace memory`, in a file for each kind, and what they have in common."""
