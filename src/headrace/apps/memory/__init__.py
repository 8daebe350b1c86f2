"""Memory of users: profiles and events that a model makes of what they say, kept up to date from change events."""
