"""The first stage: a file of test cases becomes normalised cases, with everything that was wrong with it."""
