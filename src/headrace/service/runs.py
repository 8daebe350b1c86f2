"""`/runs`: starting runs of workflows, looking at them, cancelling and repeating them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from headrace.app import App
from headrace.engine.queries import to_json
from headrace.engine.workflows.documents import find_node, node_facts, run_document
from headrace.engine.workflows.tree import TreeNode
from headrace.model.api_token import Scope
from headrace.model.places import decode_place, encode_place
from headrace.model.run import RunState, RunView
from headrace.runs import start_options
from headrace.service.auth import needs
from headrace.service.paging import Page
from headrace.service.served import Served
from headrace.service.submitting import IdempotencyKey, key_of

#: Entries of one map, or rounds of one loop, that the tree of a run shows.
MOST_ENTRIES = 1_000
#: An input or output that is longer has a route of its own.
MOST_VALUE = 1 << 20

router = APIRouter(prefix="/runs", tags=["runs"])


class StartRun(BaseModel):
    """A run to start."""

    model_config = ConfigDict(extra="forbid")

    workflow: str = Field(description="name of a workflow that the app declares, or that is stored")
    input: Any = Field(None, description="what it works on: arguments by name, or any value")
    key: str | None = Field(None, description="idempotency key, unique per workflow; also as the header")
    user_id: str | None = Field(None, max_length=255, description="for whom it runs; every node is told")
    correlation_id: str | None = Field(None, max_length=255, description="what it belongs to; every node is told")
    metadata: dict[str, Any] | None = Field(None, description="what else every node is told")
    webhook: str | None = Field(None, max_length=2048, description="URL that is sent `run.ended`, signed")


class Rerun(BaseModel):
    """How a run is repeated."""

    model_config = ConfigDict(extra="forbid")

    first: str | None = Field(None, alias="from", description="run this node again in any case, such as each[3]")


class RunPage(Page):
    """Which runs are listed."""

    workflow: str | None = Field(None, max_length=64)
    state: RunState | None = None


@router.post(
    "", status_code=201, dependencies=[needs(Scope.SUBMIT)],
    responses={200: {"description": "the key was used before for the same: its run"}},
)  # fmt: skip
async def start_run(app: Served, body: StartRun, response: Response, key: IdempotencyKey = None) -> dict[str, Any]:
    """Start a run and return its id once it is stored.

    The same key and body give the run that was started before, with 200 rather than 201; another body is a conflict,
    be it another input, `user_id`, `correlation_id`, `metadata` or `webhook`.
    """
    options = start_options(key_of(body.key, key), body.user_id, body.correlation_id, body.metadata, body.webhook)
    run = await app.start_json(body.workflow, body.input, options)
    response.status_code = 201 if run.id == options.run_id else 200
    return _created(response, run.id)


@router.get("")
async def list_runs(app: Served, page: Annotated[RunPage, Query()]) -> dict[str, Any]:
    """List runs, newest first, without their inputs and outputs."""
    before = None if page.cursor is None else decode_place(page.cursor)
    # One more tells whether another page follows.
    found = await app.runtime.stores.runs.list_runs(
        workflow=page.workflow, state=page.state, before=before, limit=page.limit + 1
    )
    shown = found[: page.limit]
    last = encode_place((shown[-1].created_at, shown[-1].id)) if len(found) > len(shown) else None
    return {"runs": [run_document(view) for view in shown], "next_cursor": last}


@router.get("/{run_id}", response_model=dict[str, Any])
async def get_run(app: Served, run_id: str) -> Response:
    """Return a run as the tree of its nodes, without their outputs; of large maps and loops the first entries.

    `input` and `output` above 1 MiB are null, with `left_out: true`: they are read by `/runs/ID/input` and
    `/runs/ID/output`.
    """
    tree = await app.find_run(run_id).tree()
    texts = {name: await _text(app, stored, most=MOST_VALUE) for name, stored in _values(tree.run).items()}
    left_out = {"left_out": True} if None in texts.values() else {}
    return _spliced(run_document(tree.run) | left_out | {"nodes": [_shown(node) for node in tree.nodes]}, texts)


@router.get("/{run_id}/input", response_model=dict[str, Any], operation_id="get_run_input")
async def get_input(app: Served, run_id: str) -> Response:
    """Return the whole input of a run."""
    return await _value(app, run_id, "input")


@router.get("/{run_id}/output", response_model=dict[str, Any], operation_id="get_run_output")
async def get_output(app: Served, run_id: str) -> Response:
    """Return the whole output of a run, null while it has none."""
    return await _value(app, run_id, "output")


@router.get("/{run_id}/nodes/{path:path}", operation_id="get_run_node", response_model=dict[str, Any])
async def get_node(app: Served, run_id: str, path: str) -> Response:
    """Return a node of a run, such as each[3], with its whole output."""
    tree = await app.find_run(run_id).tree()
    node = find_node(tree, path)
    return _spliced({"run": tree.run.id} | _shown(node), {"output": await _text(app, node.output)})


@router.post("/{run_id}/cancel", dependencies=[needs(Scope.OPERATE)])
async def cancel_run(app: Served, run_id: str) -> dict[str, Any]:
    """Cancel a run: what waits of it ends at once, what runs is asked to stop."""
    run = app.find_run(run_id)
    answer = await run.cancel()
    return {"run": str(run.id), "answer": answer, "state": (await run.view()).state}


@router.post("/{run_id}/rerun", status_code=201, dependencies=[needs(Scope.OPERATE)])
async def rerun(app: Served, run_id: str, response: Response, body: Rerun | None = None) -> dict[str, Any]:
    """Run the graph of a run that has ended once more, on the same input; nodes that succeeded keep their outputs."""
    first = None if body is None else body.first
    run = app.find_run(run_id)
    again = await run.rerun(first)
    return _created(response, again.id) | {"rerun_of": str(run.id), "rerun_from": first}


def _created(response: Response, run_id: UUID) -> dict[str, Any]:
    response.headers["location"] = f"/api/v1/runs/{run_id}"
    return {"run": str(run_id)}


def _shown(node: TreeNode) -> dict[str, Any]:
    """Return a node without what makes a tree large: outputs, which have a route of their own, and most entries."""
    left_out = max(len(node.children) - MOST_ENTRIES, 0)
    return node_facts(node) | {"nodes": [_shown(one) for one in node.children[:MOST_ENTRIES]], "left_out": left_out}


async def _value(app: App, run_id: str, name: str) -> Response:
    view = await app.find_run(run_id).view()
    return _spliced({"run": view.id}, {name: await _text(app, _values(view)[name])})


def _values(view: RunView) -> dict[str, str | None]:
    return {"input": view.input, "output": view.output}


async def _text(app: App, stored: str | None, *, most: int | None = None) -> str | None:
    return "null" if stored is None else await app.runtime.means.values.load_text(stored, most=most)


def _spliced(document: dict[str, Any], texts: Mapping[str, str | None]) -> Response:
    """Answer with a document and values, which nobody parses here: one of 64 MiB would hold up all other requests."""
    head = json.dumps(to_json(document), ensure_ascii=False, separators=(",", ":"))
    members = "".join(f',"{name}":{"null" if text is None else text}' for name, text in texts.items())
    return Response(f"{head[:-1]}{members}}}", media_type="application/json")
