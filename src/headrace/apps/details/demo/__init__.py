"""Made-up answers for a scripted provider, to try batches of details without a model: `rules.json`."""
