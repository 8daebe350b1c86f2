"""Events and the agents that handle them: `from headrace.events import Agent, Event`."""

from headrace.engine.events.agents import AgentContext, EventsContext, OnError
from headrace.events.agent import Agent
from headrace.model.event import Event

__all__ = ["Agent", "AgentContext", "Event", "EventsContext", "OnError"]
