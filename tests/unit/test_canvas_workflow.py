"""Functions that write workflows: called once, with references in place of arguments."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.canvas import build, chain, choose, define_workflow, map_, run_, signature, when, workflow_of
from headrace.canvas.workflow import Parameter, input_of_any
from headrace.model.errors import InvalidInputError
from headrace.model.graph.nodes import SubNode, TaskNode
from tests.unit.canvas_runs import Runner, shown

fetch, parse, merge = map(signature, ["fetch", "parse", "merge"])
TASKS = dict.fromkeys(["fetch", "parse", "merge"], shown)


def digest(url: str, words: int = 100, *, tongue: str = "en") -> Any:
    """Write a workflow whose arguments stand at its beginning, behind it, and within a map."""
    return chain(fetch.s(url), map_(parse.s(tongue), over=[1, 2]), merge.s({"words": words}))


def test_arguments_are_members_of_the_input() -> None:
    """Within a map they are those of the run: there the input is the entry."""
    made = define_workflow(digest, tags=["fast"], on_failure="tell")
    first, mapped, last = made.graph.nodes

    assert made.name == "digest" and made.graph.tags == ("fast",) and made.graph.on_failure == "tell"
    assert isinstance(first, TaskNode) and first.args == ({"$input": ["url"]},)
    assert isinstance(last, TaskNode) and last.args == ({"$node": "map-parse"}, {"words": {"$input": ["words"]}})
    output = Runner(made.graph, TASKS, made.input_of("u", tongue="de")).output()
    assert output == [[[1, "de"], [2, "de"]], {"words": 100}]
    assert mapped.body.nodes[0].args == ({"$input": []}, {"$run": ["input", "tongue"]})  # type: ignore[union-attr]


def test_the_parameters_are_known_with_types_and_defaults() -> None:
    """For whoever checks what a run is started with."""
    made = define_workflow(digest)
    assert made.parameters is not None
    assert made.parameters[1] == Parameter("words", int, 100)
    assert [one.name for one in made.parameters] == ["url", "words", "tongue"]


def test_the_input_is_made_of_arguments() -> None:
    """As the function takes them; what is left out has its default."""
    made = define_workflow(digest, name="other")
    assert made.name == "other"
    assert made.input_of("u", 7) == made.input_of(words=7, url="u") == {"url": "u", "words": 7, "tongue": "en"}
    wrong: list[dict[str, Any]] = [{}, {"uri": "u", "url": "u"}]
    for kwargs in wrong:
        with pytest.raises(InvalidInputError, match="workflow other takes"):
            made.input_of(**kwargs)
    with pytest.raises(InvalidInputError, match="too many positional arguments"):
        made.input_of("u", 7, "de")


def test_a_function_without_arguments_calls_with_what_is_written() -> None:
    """Nothing is put before it at the beginning: a call is a call; a choice there asks the arguments."""

    def plain() -> Any:
        return fetch.s()

    def chosen(kind: str) -> Any:
        return choose(when("kind").eq("a"), fetch.s(kind), otherwise=parse.s())

    assert Runner(define_workflow(plain).graph, TASKS, {}).output() == []
    graph = define_workflow(chosen).graph
    assert graph.nodes[1].args == ({"$input": ["kind"]},)  # type: ignore[union-attr]
    assert graph.nodes[2].args == ()  # type: ignore[union-attr]


def test_parts_may_be_written_as_one_calls_the_other() -> None:
    """What is returned brings along what it refers to."""

    def review(url: str) -> Any:
        page = fetch.si(url)
        return merge.si(page.output, parse.si(page.output["text"]).output)

    made = define_workflow(review)
    assert Runner(made.graph, TASKS | {"fetch": lambda url: {"text": url}}, {"url": "u"}).output() == [
        {"text": "u"},
        ["u"],
    ]


def test_a_workflow_is_a_part_of_another() -> None:
    """Given its arguments, or what stands before it."""

    def inner(url: str, words: int = 3) -> Any:
        return chain(fetch.s(url), parse.s(words))

    made = define_workflow(inner)
    graph = build(chain(merge.s("x"), made.s(url=merge.s("y").output)))
    [part] = [node for node in graph.nodes if isinstance(node, SubNode)]
    assert part == SubNode("inner", made.graph, {"url": {"$node": "merge-2"}, "words": 3}, given=True)
    assert Runner(graph, TASKS).output() == [[["y"]], 3]
    assert build(chain(merge.s("x"), made)).nodes[1] == SubNode("inner", made.graph, {"$node": "merge"}, given=True)


def test_one_whose_inner_parts_read_the_runs_input_is_none() -> None:
    """There it would be that of the other."""
    with pytest.raises(InvalidInputError, match="workflow digest cannot be part of another"):
        define_workflow(digest).s(url="u")
    assert workflow_of("runs", map_(parse.s(run_["id"]), over=[1])).s().title == "runs"


def test_a_workflow_of_parts_takes_any_input() -> None:
    """Of a graph of JSON as well, which keeps its tags unless others are given."""
    made = workflow_of("any", fetch.s(), tags=["fast"])
    assert made.parameters is None and made.input_of([1]) == [1] and made.input_of() is None
    again = workflow_of("again", made.graph, on_failure="tell")
    assert (again.graph.tags, again.graph.on_failure) == (("fast",), "tell")
    with pytest.raises(InvalidInputError, match="workflow any takes one value"):
        made.input_of(url="u")


def test_of_one_that_is_not_declared_here_that_is_said() -> None:
    """Its arguments by name could only be those of a function that nobody has imported."""
    assert (input_of_any("digest", [1]), input_of_any("digest")) == ([1], None)
    with pytest.raises(InvalidInputError, match=r"digest is not declared in this process.*import the module"):
        input_of_any("digest", url="u")


def test_what_a_start_takes_for_the_run_is_no_name_of_an_argument() -> None:
    """It would be taken for the run's own, and never reach the workflow."""

    def by_key(key: str) -> Any:
        return fetch.s(key)

    def by_user(url: str, *, user_id: str = "") -> Any:
        return fetch.s(url, user_id)

    for function, name in ((by_key, "key"), (by_user, "user_id")):
        with pytest.raises(InvalidInputError, match="must not have arguments named key, user_id") as caught:
            define_workflow(function)
        assert caught.value.value == name


def test_the_report_of_a_failure_is_the_input_of_what_follows_it() -> None:
    """Its members where there are arguments of their names, else all of it as the one argument."""
    report = {"workflow": "w", "run_id": "r", "error": None}

    def members(workflow: str, run_id: str, error: Any) -> Any:
        return fetch.s(workflow, run_id, error)

    def one(report: Any, loud: bool = False) -> Any:
        return fetch.s(report, loud)

    def other(url: str, words: int) -> Any:
        return fetch.s(url, words)

    assert define_workflow(members).input_of_report(report) == report
    assert define_workflow(one).input_of_report(report) == {"report": report, "loud": False}
    assert workflow_of("any", fetch.s()).input_of_report(report) == report
    with pytest.raises(InvalidInputError, match="workflow other takes"):
        define_workflow(other).input_of_report(report)


async def wait() -> Any:
    """Be none: it waits."""


def yields() -> Any:
    """Be none: it is a generator."""
    yield fetch.s()


def nothing() -> Any:
    """Be none: it returns nothing."""


def spread(*urls: str) -> Any:
    """Be none: its arguments have no names."""
    return fetch.s()


def untyped(url: NoSuchType) -> Any:  # type: ignore[name-defined] # noqa: F821
    """Be one although its types are known to nobody."""
    return fetch.s(url)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (wait, "workflow must be a plain function"),
        (yields, "workflow must be a plain function"),
        (fetch, "workflow must be a plain function"),
        (nothing, "workflow nothing must return its parts"),
        (spread, "workflow spread must name all its arguments"),
    ],
)
def test_other_functions_are_refused(function: Any, message: str) -> None:
    """With what they lack."""
    with pytest.raises(InvalidInputError, match=message):
        define_workflow(function)


def test_types_that_only_checkers_know_do_no_harm() -> None:
    """They are kept as they are written."""
    made = define_workflow(untyped)
    assert made.parameters is not None and made.parameters[0].annotation == "NoSuchType"
