"""The rules by which a run moves, and for each an edit that breaks it and the tests that notice.

Both levels and all stores go by these rules, so that no store is needed to notice.
"""

from __future__ import annotations

from tests.mutants.mutated import Edit
from tests.mutants.sql_mutants import Mutant

FLOW = "model/graph/flow.py"
LAYOUT = "model/graph/layout.py"
TESTS = "tests/unit/test_graph_flow.py"


def broken(name: str, file: str, old: str, new: str, *tests: str) -> Mutant:
    """Return a mutant of one edit."""
    return Mutant("rules of a graph", name, (Edit(file, old, new),), tuple(f"{TESTS}::{test}" for test in tests))


MUTANTS = (
    broken(
        "a graph ends with its leaves alone", LAYOUT, "frozenset(early | set(self.leaves))", "frozenset(self.leaves)",
        "test_closers_are_those_whose_ends_are_the_end", "test_drawn_graphs_end_as_the_rules_say_in_every_order",
    ),
    broken(
        "who leads to an early join is all that ends a graph", LAYOUT, "frozenset(early | set(self.leaves))",
        "frozenset(early or self.leaves)", "test_drawn_graphs_end_as_the_rules_say_in_every_order",
    ),
    broken(
        "each join waits for all", LAYOUT, "len(self.incoming[name]) if join is None else join",
        "len(self.incoming[name])", "test_a_join_waits_for_as_many_as_it_says",
    ),
    broken(
        "a failure that goes on leads over no edge", FLOW, "port, read = MAIN_PORT, _nothing", "read = _nothing",
        "test_a_failure_leads_where_its_node_says",
    ),
    broken(
        "a failure that goes on has the value of a success", FLOW, "port, read = MAIN_PORT, _nothing",
        "port = MAIN_PORT", "test_an_error_edge_goes_by_its_condition",
    ),
    broken(
        "a failure leads over error edges whatever its node says", FLOW, "case NodeState.FAILED, OnError.OUTPUT:",
        "case NodeState.FAILED, _:", "test_drawn_graphs_end_as_the_rules_say_in_every_order",
    ),
    broken(
        "ports are not heeded", FLOW, "edge.port == port and (", "port is not None and (",
        "test_ports_are_if_and_else",
    ),
    broken(
        "two edges of one node arrive once", FLOW, "moves.arrivals += [Step(path, total, need, one) for one in fired]",
        "moves.arrivals.append(Step(path, total, need, any(fired)))", "test_several_edges_from_one_node_count_each",
    ),
    broken(
        "what is passed over leads nowhere on", FLOW, "ended.append((edge_target, passed, _nothing))", "continue",
        "test_all_that_depends_on_what_was_passed_over_is",
    ),
    broken(
        "a graph of several ends arrives at the end of its map", FLOW, "closers > 1 or not is_plain_entry(root, scope)",
        "split_entry(scope)[1] is None", "test_other_graphs_within_have_an_end_of_their_own",
    ),
)  # fmt: skip
