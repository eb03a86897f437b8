"""A few mutated bursts for every door, and the command that runs all campaigns."""

import subprocess
import sys
from pathlib import Path

import pytest

from campaigns import fuzz
from campaigns.door_campaign import DoorCampaign, DoorFaultError, Server
from campaigns.doors import DOORS, Probe

ROOT = Path(__file__).parents[3]
SEED = 20260101
BURSTS = 40


@pytest.mark.parametrize("name", DOORS)
def test_door_survives_mutated_frames(name: str, tmp_path: Path) -> None:
    figures = DoorCampaign(DOORS[name], SEED, tmp_path).run(bursts=BURSTS)
    assert figures.bursts >= BURSTS
    assert figures.received > 0


def test_missing_answer_to_another_peer_is_a_fault(tmp_path: Path) -> None:
    wrong = DOORS["gearmonkey"]._replace(probe=Probe(b"PING\r\n", b"+GONG\r\n"))
    with pytest.raises(DoorFaultError, match="another peer was answered"):
        DoorCampaign(wrong, SEED, tmp_path).run(bursts=BURSTS)


def test_logged_exception_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("campaigns.door_campaign.FAULTS", ("peer refused",))
    with pytest.raises(DoorFaultError, match="peer refused"):
        DoorCampaign(DOORS["danga"], SEED, tmp_path).run(bursts=BURSTS)


def test_killed_server_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = Server.connect

    def connect_and_kill(server: Server) -> object:
        connection = connect(server)
        server._process.process.kill()
        server._process.process.wait()
        return connection

    monkeypatch.setattr(Server, "connect", connect_and_kill)
    with pytest.raises(DoorFaultError, match="exit code -9"):
        DoorCampaign(DOORS["gearman"], SEED, tmp_path).run(bursts=BURSTS)


def test_command_prints_what_it_tried() -> None:
    command = [sys.executable, "-m", "campaigns.fuzz", "--seed", str(SEED), "--seconds", "0.2", "resp", "door:danga"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"seed {SEED}" in run.stdout
    rows = {line.split()[0]: line.split() for line in run.stdout.splitlines()[1:]}
    assert int(rows["resp"][1]) > 0
    assert int(rows["danga"][1]) > 0


def test_fault_is_printed_with_seed_and_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    fuzz.report_fault("resp", 7, "ValueError: no", "2a 0d0a")
    printed = capsys.readouterr().out
    assert "make fuzz FUZZ_SEED=7 FUZZ_ONLY=resp" in printed
    assert 'python -m campaigns.fuzz resp --chunks "2a 0d0a"' in printed


def test_process_that_dies_is_a_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz.sys, "executable", "false")
    assert not fuzz.fuzz_codec("resp", 7, 0.1, tmp_path)
    assert "its process ended with exit code 1" in capsys.readouterr().out


def test_stream_of_a_fault_is_read_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz.replay("resp", b"*1\r\n$4\r\nPI".hex() + " " + b"NG\r\n".hex()) == 0
    assert "PING" in capsys.readouterr().out
