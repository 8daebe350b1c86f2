"""The functions of the expression language: these and no others, in one table."""
