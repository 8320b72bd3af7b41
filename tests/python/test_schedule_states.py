"""Tasks in any order of submissions, cancellations, failures and ends."""

import itertools

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from kernwright.schedule import Scheduler

CLASSES = ("guaranteed", "burstable", "best_effort")
NEXT = {
    "pending": {"queued", "refused"},
    "queued": {"admitted", "cancelled", "failed"},
    "admitted": {"running"},
    "running": {"done", "failed", "cancelled"},
}


def states(task):
    return [state for state, _, _ in task.history]


class Tasks(RuleBasedStateMachine):
    """Reservations stay in balance, and states follow each other."""

    tasks = Bundle("tasks")

    def __init__(self):
        super().__init__()
        self.scheduler = Scheduler(memory=1000, background=False)
        self.known = []

    @rule(
        target=tasks,
        memory=st.integers(1, 1200),
        qos=st.sampled_from(CLASSES),
        share=st.none() | st.floats(0.01, 1),
        fails=st.booleans(),
    )
    def submit(self, memory, qos, share, fails):
        task = self.scheduler.submit(self.work, fails, memory=memory, qos=qos, share=share)
        assert (task.state == "refused") == (memory > 1000)
        self.known.append((task, memory, fails))
        return task

    @staticmethod
    def work(fails):
        if fails:
            raise ValueError("planned")
        return

    @rule(task=tasks)
    def cancel(self, task):
        was_queued = task.state == "queued"
        assert task.cancel() == was_queued

    @rule(task=tasks)
    def follow(self, task):
        after = self.scheduler.submit(self.work, False, after=task)
        if task.state not in ("queued", "done"):
            assert after.state == "failed"

    @rule()
    def step(self):
        self.scheduler.step()

    @invariant()
    def states_follow_each_other(self):
        for task, _, fails in self.known:
            passed = states(task)
            assert all(b in NEXT[a] for a, b in itertools.pairwise(passed))
            assert task.state != ("done" if fails else "failed")

    @invariant()
    def nothing_is_reserved_between_steps(self):
        while running := [task for task, _, _ in self.known if task.state == "running"]:
            running[0].exception()  # a GPU may still be at it
        assert self.scheduler.stats()["memory"]["reserved"] == 0
        assert self.scheduler.stats()["share"]["reserved"] == 0

    def teardown(self):
        self.scheduler.close()
        assert all(task.done() for task, _, _ in self.known)


Tasks.TestCase.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
TestTasks = Tasks.TestCase
