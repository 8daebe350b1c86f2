"""What is done with events that come: consumers, agents, and what waits for them."""
