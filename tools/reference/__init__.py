"""Write pages of docs/reference from the code: a module for each page."""
