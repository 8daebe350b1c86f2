"""JSON flows: workflows of typed nodes that people draw, import and run."""

from headrace.apps.flows.embedding import AddedFlow, add_flow
from headrace.apps.flows.reading import FlowError

__all__ = ["AddedFlow", "FlowError", "add_flow"]
