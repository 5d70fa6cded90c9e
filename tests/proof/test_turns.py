"""Threads that want the same take turns, and no other thread waits for them."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from fp4patch.proof.execution.result import Ran
from fp4patch.proof.execution.scheduler import Scheduler
from fp4patch.proof.turns import Turns


@dataclass
class Seen:
    """How many threads were inside at the same time, at most."""

    inside: int = 0
    most: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def enter(self) -> None:
        with self.lock:
            self.inside += 1
            self.most = max(self.most, self.inside)

    def leave(self) -> None:
        with self.lock:
            self.inside -= 1


def test_one_name_is_held_by_one_thread() -> None:
    turns, seen = Turns(), Seen()

    def work(_: int) -> None:
        with turns.of("a"):
            seen.enter()
            threading.Event().wait(0.002)
            seen.leave()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(12)))
    assert seen.most == 1


def test_two_names_are_held_at_the_same_time() -> None:
    turns, both = Turns(), threading.Barrier(2)

    def work(name: str) -> int:
        with turns.of(name):
            return both.wait(20)

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(work, ("a", "b"))) == [0, 1]


def test_a_function_is_swept_once_and_one_that_is_not_known_each_time() -> None:
    scheduler, ran = Scheduler(2), Ran("inputs", 8)
    for function, expected in ((("e2m1", 1), [None, ran, ran]), (None, [None, None, None])):
        found = []
        for _ in range(3):
            with scheduler.turn(function) as known:
                found.append(known)
                scheduler.keep(function, ran)
        assert found == expected


def test_the_program_that_takes_all_processors_is_alone() -> None:
    scheduler, seen = Scheduler(3), Seen()

    def work(_: int) -> None:
        with scheduler.all_processors() as threads:
            seen.enter()
            assert threads == 3
            threading.Event().wait(0.002)
            seen.leave()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(8)))
    assert seen.most == 1
