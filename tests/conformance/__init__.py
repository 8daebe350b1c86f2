"""One suite for every backend: a promise of the ports per test, its docstring the promise."""
