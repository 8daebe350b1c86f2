"""Twelve short documents written for the demonstration, their template, and what a careful reader finds in them."""
