"""Sample files of test cases, made anew wherever they are wanted, and what is known to be in them."""
