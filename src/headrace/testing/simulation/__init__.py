"""The simulation: the real engine on the memory store, in thousands of interleavings drawn from seeds.

`run_seed(17)` runs one world and returns a `Run`; `run_seeds(range(1, 2001), jobs=2)` runs many;
`python -m headrace.testing.simulation --seeds 2000` is the command. `run_pauses(17)`, and `--world pauses`, is another
world: tasks that wait for events. See docs/explanation/simulation.md.
"""

from headrace.testing.simulation.campaign import run_seeds
from headrace.testing.simulation.pauses import run_pauses
from headrace.testing.simulation.report import Run
from headrace.testing.simulation.world import run_seed

__all__ = ["Run", "run_pauses", "run_seed", "run_seeds"]
