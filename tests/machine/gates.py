"""Rules of the gate: jobs behind limits, admissions, and what operators and reports change about them."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from uuid import UUID, uuid4

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from headrace.model.admission import Admitted, WaitReason
from headrace.model.batch import NewBatch
from headrace.model.breaker import BreakerReport, BreakerRule, BreakerState, OnOpen
from headrace.model.job import Claim, ClaimedJob, JobSpec, JobState, NewJob
from headrace.model.limits import Declared, Gate, Level, Rate, key_cap, queue_cap
from headrace.ports.admission import Admission
from headrace.ports.limiter import Limiter
from tests.machine.backlogs import Backlogs
from tests.machine.world import ARGS, GATES, SECOND, counts, delays, look, some

CAP, BUCKET, OTHER = "task:gated", "meter", "other"
KEY_CAPS = (key_cap(GATES[0], "x"), key_cap(GATES[0], "y"))
#: Powers of two, so that levels, tags and times are exact in every store.
RATES = (Rate(0.5, 4.0), Rate(2.0, 2.0), Rate(1.0, 8.0))
DECLARED = Declared(
    {CAP: 2},
    {BUCKET: RATES[0], OTHER: RATES[2]},
    {
        "guard": BreakerRule(failures=2, cooldown=6 * SECOND),
        "switch": BreakerRule(failures=1, cooldown=3 * SECOND, on_open=OnOpen.FAIL),
    },
)
PLAIN = Gate()

gate_queues = st.sampled_from([*GATES, GATES[0]])
gates = st.sampled_from(
    [
        None, Gate(fair_key="a"), Gate(fair_key="b"), Gate(fair_key="b", caps=(CAP,)), Gate(caps=(CAP,)),
        Gate(key="x", key_limit=1), Gate(key="x", key_limit=1, fair_key="a"), Gate(key="y", key_limit=2),
        Gate(limits=((BUCKET, 1.0),)), Gate(limits=((BUCKET, None),), caps=(CAP,)),
        Gate(fair_key="a", limits=((BUCKET, None), (OTHER, 1.0))), Gate(fair_key="b", limits=((BUCKET, None),)),
        Gate(fair_key="b", limits=((BUCKET, 1.0), (OTHER, None))), Gate(limits=((OTHER, 2.0),)),
        Gate(breakers=("guard",)), Gate(breakers=("guard", "switch"), limits=((BUCKET, 1.0),)),
        Gate(breakers=("guard",), limits=((BUCKET, None),)),
    ]
)  # fmt: skip
gated_specs = st.builds(
    JobSpec,
    task=st.just("gated"),
    queue=gate_queues,
    priority=st.sampled_from([5, 5, 0]),
    max_attempts=st.just(2),
    gate=gates,
    cost=st.sampled_from([1.0, 1.0, 2.0, 8.0]),
)


class Gates(Backlogs):
    """Jobs wait behind gates, pass them, and come back to them."""

    @rule(spec=gated_specs, count=counts, delay=delays)
    def insert_gated(self, spec: JobSpec, count: int, delay: timedelta) -> None:
        """Insert jobs into a queue that is, or is going to be, a gated one."""
        run_at = self.clock.now() + delay if delay else None
        new = [NewJob(spec, ARGS, self.new_id(), run_at) for _ in range(count)]
        assert self.run(self.stores.jobs.insert_jobs(new)) == [job.id for job in new]
        self.sent += new

    @rule(spec=gated_specs, count=counts, cancel=st.booleans())
    def submit_gated(self, spec: JobSpec, count: int, cancel: bool) -> None:
        """Submit a batch behind a gate; perhaps somebody cancels it before anything starts."""
        self.add_batch(NewBatch(spec, self.new_id()), count)
        if cancel:
            self.run(self.stores.batches.cancel_batch(self.batches[-1]))
            self.admit(spec.queue, 4)

    @rule(queue=gate_queues, limit=st.integers(1, 6), twice=st.booleans())
    def admit_as_a_live_worker(self, queue: str, limit: int, twice: bool) -> None:
        """Admit for a session that lives; the answer may have been lost."""
        for _ in range(1 + twice):
            self.admit(queue, limit)

    @rule(queue=gate_queues, which=some)
    def admit_as_anyone(self, queue: str, which: int) -> None:
        """Admit for a session that may be dead."""
        self.admit(queue, 2, session=self.workers[which % len(self.workers)])

    @rule(queue=gate_queues, units=st.sampled_from([0.0, 1.0, 4.0]))
    def admit_with_grants(self, queue: str, units: float) -> None:
        """Admit with units that were taken elsewhere: no more of them is used."""
        rated = any(view.name == BUCKET and view.rate for view in self.run(self.gate.list_rates()))
        answer = self.admit(queue, 4, grants={BUCKET: units, OTHER: 4.0})
        # A bucket that was closed before anybody declared its rate is no limit.
        assert not rated or answer.spent.get(BUCKET, 0.0) <= units

    def admit(
        self, queue: str, limit: int, *, session: UUID | None = None, grants: dict[str, float] | None = None
    ) -> Admitted:
        """Admit, and check whether each job might start now and no cap or key is exceeded."""
        if session is None:
            if not self.alive(self.workers[-1]):
                self.start_worker()
            session = self.workers[-1]
        views = {job.id: job for job in self.jobs()}
        answer = self.run(self.gate.admit_jobs(Claim(session, queue, limit), grants=grants))
        assert len(answer.jobs) <= limit
        assert not answer.jobs or (self.alive(session) and queue not in self.paused)
        for job in answer.jobs:
            was = views[job.id]
            assert (was.state, was.queue, job.attempt) == (JobState.READY, queue, was.attempt + 1)
            assert was.batch_id is None or self.may_start(was.batch_id)
            self.held.append((session, job))
        self._check_limits(answer.jobs)
        if answer.gated:
            assert self.run(self.stores.jobs.claim_jobs(Claim(session, queue, limit))) == []
        held = self.run(self.stores.jobs.claimed_jobs(session, queue=queue))
        assert {job.id for job in answer.jobs} <= {job.id for job in held}
        return answer

    def _check_limits(self, started: list[ClaimedJob]) -> None:
        state = self.memory.jobs._state  # type: ignore[attr-defined]
        caps = {view.key: view for view in look(self.memory.admission.list_limits()).caps}
        keys = Counter((job.spec.queue, (job.spec.gate or PLAIN).key) for job in state.running.values())
        for job in started:
            gate = state.running[job.id].spec.gate or PLAIN
            for name in (queue_cap(job.queue), *gate.caps):
                assert name not in caps or caps[name].cap is None or caps[name].running <= (caps[name].cap or 0)
            override = caps.get(key_cap(job.queue, gate.key or ""))
            limit = gate.key_limit if override is None else override.cap
            assert limit is None or keys[job.queue, gate.key] <= limit

    @property
    def gate(self) -> Admission:
        """The gate of the stores."""
        assert self.stores.admission is not None
        return self.stores.admission

    @property
    def limiter(self) -> Limiter:
        """The limiter of the stores."""
        assert self.stores.limiter is not None
        return self.stores.limiter

    @rule(again=st.booleans())
    def declare(self, again: bool) -> None:
        """Declare what an app declares at its start, also while things run."""
        self.run(self.gate.declare_limits(DECLARED if again else Declared(DECLARED.caps)))

    @rule(key=st.sampled_from([CAP, CAP, queue_cap(GATES[0]), *KEY_CAPS]), cap=st.sampled_from([None, 0, 1, 3]))
    def override_cap(self, key: str, cap: int | None) -> None:
        """Override a cap, or return to the declared one."""
        self.run(self.gate.set_cap(key, cap))

    @rule(name=st.sampled_from([BUCKET, BUCKET, OTHER, queue_cap(GATES[1])]), rate=st.sampled_from([None, *RATES]))
    def override_rate(self, name: str, rate: Rate | None) -> None:
        """Override a rate, or return to the declared one."""
        self.run(self.gate.set_rate(name, rate))

    @rule(queue=gate_queues, fair_key=st.sampled_from("ab"), weight=st.sampled_from([0.5, 1.0, 4.0]))
    def weigh(self, queue: str, fair_key: str, weight: float) -> None:
        """Change the weight of a fair key."""
        self.run(self.gate.set_weight(queue, fair_key, weight))

    @rule(
        name=st.sampled_from([CAP, BUCKET, "guard", "switch", queue_cap(GATES[0]), queue_cap(GATES[1])]),
        bucket=st.booleans(),
    )
    def forget(self, name: str, bucket: bool) -> None:
        """Remove whatever limits by a name, or no more than its bucket."""
        self.run(self.limiter.forget(name) if bucket else self.gate.forget_limit(name))

    @rule(units=st.sampled_from([0.5, 2.0, 8.0]), some_of_it=st.booleans(), back=st.booleans())
    def take(self, units: float, some_of_it: bool, back: bool) -> None:
        """Take units for a call that is no job, and perhaps give them back."""
        taken = self.run(self.limiter.take({BUCKET: units, "nothing": 1.0}, some=some_of_it))
        assert taken.unknown >= {"nothing"}
        taken = self.run(self.limiter.take({BUCKET: units}, some=some_of_it))
        if back:
            self.run(self.limiter.give_back(taken.units))
        self.run(self.limiter.levels([BUCKET, "nothing"]))

    @rule(seconds=st.sampled_from([1, 3, 12]), declared=st.booleans())
    def close_bucket(self, seconds: int, declared: bool) -> None:
        """Close a bucket, as a 429 does; perhaps a process that starts declares it again."""
        self.run(self.limiter.close_bucket(BUCKET, timedelta(seconds=seconds)))
        if declared:
            self.run(self.limiter.declare({BUCKET: RATES[0]}))

    @rule(name=st.sampled_from([BUCKET, "nothing"]))
    def open_bucket(self, name: str) -> None:
        """Open a bucket, closed or not."""
        self.run(self.limiter.open_bucket(name))

    @rule(key=st.sampled_from(["guard", "switch", "nobody's"]), how=st.sampled_from(["reports", "reports", "hand"]))
    def trip(self, key: str, how: str) -> None:
        """Report failures of jobs of long ago, or open a breaker by hand."""
        if how == "reports":
            self.run(self.gate.report_calls([BreakerReport(key, uuid4(), 1, succeeded=False)] * 2))
        elif any(view.key == key for view in self.run(self.gate.list_limits()).breakers):
            self.run(self.gate.set_breaker(key, BreakerState.OPEN))

    @precondition(lambda self: self.held)
    @rule(which=some, key=st.sampled_from(["guard", "switch"]), succeeded=st.booleans())
    def report(self, which: int, key: str, succeeded: bool) -> None:
        """Report how an attempt ended, perhaps a probe, perhaps one of long ago."""
        _, job = self.held[-1 - which % min(len(self.held), 6)]
        self.run(self.gate.report_calls([BreakerReport(key, job.id, job.attempt, succeeded)]))

    @precondition(lambda self: self.seen)
    @rule(which=some, elsewhere=st.sampled_from([None, Level(0.0), Level(1.0), Level(4.0), Level(4.0, 2 * SECOND)]))
    def explain(self, which: int, elsewhere: Level | None) -> None:
        """Ask why jobs do not run, by levels counted elsewhere too; each store gives the same reason and numbers."""
        job_id = sorted(self.seen)[which % len(self.seen)]
        found = self.run(self.gate.explain_job(job_id, levels=None if elsewhere is None else {BUCKET: elsewhere}))
        state = self.job(job_id).state
        assert found is not None
        assert (found.reason is WaitReason.FINAL, found.reason is WaitReason.RUNNING) == (
            state.final, state is JobState.RUNNING,
        )  # fmt: skip
        assert self.run(self.gate.explain_job(uuid4())) is None

    def open_gates(self) -> None:
        """Let everything pass that can: no overrides, wide rates."""
        for key in (CAP, *KEY_CAPS, *map(queue_cap, GATES)):
            self.run(self.gate.set_cap(key, None))
        for name in (BUCKET, OTHER, *map(queue_cap, GATES)):
            self.run(self.gate.set_rate(name, Rate(2.0**20, 2.0**20)))
