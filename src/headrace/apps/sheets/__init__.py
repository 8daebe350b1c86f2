"""Files that people open: cells that cannot hurt, workbooks, and files that are there whole or not at all."""
