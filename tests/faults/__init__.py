"""Real processes on a real PostgreSQL that are killed, frozen, blocked and cut off."""
