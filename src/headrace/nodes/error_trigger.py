"""errorTrigger: begins the run of an error workflow."""

from __future__ import annotations

from headrace.nodes.base import Call, Items, Named, Shape, ours

#: What a run begins with that nobody gave anything.
_BY_HAND: tuple[Items, ...] = ([], [{"json": {}}])
#: What an error workflow is given when it is started by hand, so that it can be tried.
_EXAMPLE = {
    "execution": {
        "id": "0",
        "url": None,
        "retryOf": None,
        "error": {"message": "an example of an error", "stack": None},
        "lastNodeExecuted": "the name of a node",
        "mode": "manual",
    },
    "workflow": {"id": "0", "name": "the name of a flow"},
}


class ErrorTriggerType(Named):
    """Gives what is known of the run that failed; an example when it is started by hand."""

    def run(self, call: Call) -> list[Items]:
        """Return one item."""
        return [[{"json": _EXAMPLE}] if call.given in _BY_HAND else call.given]


TYPE = ErrorTriggerType(
    "errorTrigger",
    ours("errorTrigger", "n8n-nodes-base.errorTrigger"),
    (1, 1),
    "begins an error workflow: gives the run that failed and why",
    Shape.TRIGGER,
)
