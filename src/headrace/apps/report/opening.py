"""The app of reports, its queues, and how each kind of work is tried again.

One app for all processes: tasks that run in a child process, or on a farm, are found by the names of their modules.
"""

from __future__ import annotations

from headrace import App, Backoff

Q_IO, Q_CPU, Q_LLM, Q_ORCH = "q_io", "q_cpu", "q_llm", "q_orch"
#: Jobs of each queue that one process runs at once; `--queue`, `--concurrency` and `[queues.NAME]` say otherwise.
SLOTS = {Q_IO: 8, Q_CPU: 4, Q_LLM: 8, Q_ORCH: 2}

#: Reading and storing: five tries.
IO = Backoff.exponential(max_attempts=5, base="500ms", cap="2m")
#: Computing gives the same each time: once more, for a process that died of something else.
CPU = Backoff.fixed("1s", max_attempts=2)
#: Asking a model: what is wrong with an answer is repaired within a try.
LLM = Backoff.exponential(max_attempts=4, base="1s", cap="2m")
#: Nothing is tried again: the run fails, and says from which stage to go on.
ORCH = Backoff.none()

#: A call of the model is given up after SOFT seconds and has failed; HARD ends the attempt whatever it does.
SOFT, HARD = 60.0, 90.0
IO_TIME, CPU_TIME, ORCH_TIME = "5m", "10m", "1m"

app = App()
