"""Conversations in English and Chinese, what a careful reader remembers of them, and a model that reads them so."""
