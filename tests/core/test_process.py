"""Programs that run several at a time: all end at once, with their children."""

import os
import signal
from pathlib import Path
from threading import Thread

import pytest
from processes import ends, wait_for

from fp4patch.core.errors import ProofError
from fp4patch.core.process import Cancelled, Runner


def test_stopping_ends_programs_and_their_children(tmp_path: Path) -> None:
    runner = Runner(os.environ)
    outcome: list[BaseException] = []

    def work() -> None:
        try:
            runner.run(["sh", "-c", f"sleep 60 & echo $! > {tmp_path}/pid; wait"], scratch=tmp_path)
        except Cancelled as cancelled:
            outcome.append(cancelled)

    thread = Thread(target=work)
    thread.start()
    child = wait_for(tmp_path / "pid")
    runner.stop()
    thread.join(timeout=10)
    assert len(outcome) == 1
    assert ends(child)
    with pytest.raises(Cancelled):
        runner.run(["true"], scratch=tmp_path)


def test_an_interrupt_while_it_waits_ends_the_program_and_its_children(tmp_path: Path) -> None:
    def interrupt() -> None:
        wait_for(tmp_path / "pid")
        os.kill(os.getpid(), signal.SIGINT)

    Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        Runner(os.environ).run(["sh", "-c", f"sleep 60 & echo $! > {tmp_path}/pid; wait"], scratch=tmp_path)
    assert ends(wait_for(tmp_path / "pid"))


def test_a_program_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    with pytest.raises(ProofError, match=r"sh did not finish in 0\.5 s"):
        Runner(os.environ, 0.5).run(["sh", "-c", f"sleep 60 & echo $! > {tmp_path}/pid; wait"], scratch=tmp_path)
    assert ends(wait_for(tmp_path / "pid"))
