"""Headrace within other systems that run code: each module needs the package it is named for, and nothing else does."""
