"""Programs that run several at a time: all end at once, with their children."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pytest
from processes import ends, wait_for

from fp4patch.core.errors import Fp4PatchError, ProofError, UsageError
from fp4patch.core.process import Cancelled, Runner, must_run_programs, run


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


def test_a_program_that_hangs_is_ended_with_its_children_and_the_message_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ProofError, match=r"sh did not finish in 0\.5 s") as caught:
        Runner(os.environ, 0.5).run(["sh", "-c", f"sleep 60 & echo $! > {tmp_path}/pid; wait"], scratch=tmp_path)
    assert ends(wait_for(tmp_path / "pid"))
    assert "FP4PATCH_COMPILE_TIMEOUT=SECONDS" in caught.value.help


@pytest.mark.parametrize("text", ["0", "-1", "nan", "soon", "1e300", "inf"])
def test_a_time_limit_that_is_no_number_of_seconds_is_a_mistake_of_the_user(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FP4PATCH_COMPILE_TIMEOUT", text)
    with pytest.raises(UsageError, match="FP4PATCH_COMPILE_TIMEOUT"):
        Runner(os.environ)


def test_a_program_on_a_noexec_mount_is_an_error_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "program"
    program.touch(mode=0o600)  # the kernel's answer is the same
    must_run_programs(tmp_path)
    with pytest.raises(PermissionError):
        run([program])
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_NOEXEC))  # a mount takes rights
    for refused in (lambda: must_run_programs(tmp_path), lambda: run([program])):
        with pytest.raises(Fp4PatchError, match="which is mounted noexec") as caught:
            refused()
        assert "TMPDIR" in caught.value.help
