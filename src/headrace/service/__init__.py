"""The HTTP service: routes of FastAPI over the façade."""
