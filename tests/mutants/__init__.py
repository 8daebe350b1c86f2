"""Guards taken away one by one: what is said to find the gap must find it."""
