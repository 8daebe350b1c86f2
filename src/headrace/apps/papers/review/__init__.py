"""Review by people: sheets to work in, reading them back, and the log of who decided what."""
