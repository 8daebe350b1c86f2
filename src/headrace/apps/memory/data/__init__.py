"""Values of the memory of users: plain and checked, without a store or a model."""
