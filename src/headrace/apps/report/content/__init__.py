"""The words of a report: what the model is given for them, and the template's where it gives none."""
