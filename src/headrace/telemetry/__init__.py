"""Adapters that tell others of model calls. The packages they need are imported when one is asked for."""
