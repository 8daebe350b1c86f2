"""The commands of `headrace flows`, one module each."""
