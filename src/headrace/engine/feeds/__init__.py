"""Feeds in one process: appends that go together, and tails that all followers share."""
