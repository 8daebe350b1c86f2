"""The one graph model: what workflows are made of, and the rules by which they run. Pure, without clock and store."""
