"""From an answer to valid values: what is wrong is mended, asked for again, given to a second model, or labelled."""
