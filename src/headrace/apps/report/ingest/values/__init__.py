"""What cells say, made one of the words, dates and numbers that reports count."""
