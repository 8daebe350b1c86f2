"""Requests to addresses that users write: to no address but checked ones, within bounds of size and time."""
