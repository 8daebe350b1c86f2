"""The core in thousands of interleavings, and the simulation that makes them."""
