"""The backends of the conformance suite: each module opens empty stores for one test."""
