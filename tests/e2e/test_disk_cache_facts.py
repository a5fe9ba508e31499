"""How large the tier on the disk is: in the report of memory, `akunu plan` and `akunu doctor`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import akunu

PROMPT = [20 + i * 7 % 200 for i in range(700)]  # two pieces and most of a third


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that Ember has used."""
    folder = tmp_path / "prefixes"
    with akunu.load("ember", cache_dir=folder) as model:
        model.generate(PROMPT, max_tokens=1)
    return folder


def sizes(folder: Path) -> list[int]:
    return [file.stat().st_size for file in folder.glob("*/*.run")]


def test_the_report_of_memory_ends_with_it(folder: Path) -> None:
    with akunu.load("ember", cache_dir=folder, cache_size=2**25) as model:
        report = model.memory
        assert report.disk == model.occupancy.disk
        assert report.disk is not None
        assert (report.disk.bytes, report.disk.files) == (sum(sizes(folder)), 3)
        *_, total, now, most = str(report).splitlines()
        assert total.split()[0] == "total"
        assert now.split() == ["on", "the", "disk", f"{sum(sizes(folder)) / 2**20:.1f}", "MiB"]
        assert most.split() == ["there", "at", "most", "32.0", "MiB"]
    with akunu.load("ember") as model:
        assert model.memory.disk is None
        assert dict(model.memory) == dict(report)  # what is there is no memory
        assert str(model.memory).splitlines()[-1].startswith("total")


def test_a_plan_says_what_there_is_and_what_it_may_be(folder: Path, run_akunu: Any) -> None:
    plan = ["plan", "ember", "--no-speed", "--cache-dir", str(folder)]
    facts = json.loads(run_akunu(*plan, "--json").stdout)["disk_cache"]
    assert (facts["bytes"], facts["files"]) == (sum(sizes(folder)), 3)
    assert facts["folder"] == str(folder)
    with akunu.load("ember") as model:
        shape = model.config
    assert facts["bytes_per_token"] == 2 * shape.n_layers * shape.n_kv_heads * shape.head_dim * 2
    assert facts["most_bytes"] == 8 * 2**30
    piece = max(sizes(folder))
    assert facts["most_tokens"] == facts["most_bytes"] // piece * 256
    table = run_akunu(*plan, "--cache-size", str(3 * piece)).stdout
    assert f"at most    {3 * piece / 2**20:.1f} MiB: 768 tokens" in table
    assert "in 3 files" in table
    table = run_akunu(*plan, "--cache-size", str(piece - 1)).stdout
    assert "too little for a piece" in table


def test_a_plan_is_of_the_cache_that_was_asked_for(folder: Path, run_akunu: Any) -> None:
    """Another format has a folder of its own, and a plan makes none."""
    there = set(folder.iterdir())
    plan = ["plan", "ember", "--no-speed", "--json", "--cache-dir", str(folder)]
    facts = json.loads(run_akunu(*plan, "--kv-type", "q8_0").stdout)["disk_cache"]
    half = json.loads(run_akunu(*plan).stdout)["disk_cache"]["bytes_per_token"]
    assert (facts["files"], facts["bytes_per_token"]) == (0, half // 64 * 34)
    assert set(folder.iterdir()) == there
    nowhere = folder / "nowhere"
    plan[-1] = str(nowhere)
    assert json.loads(run_akunu(*plan).stdout)["disk_cache"]["files"] == 0
    assert not nowhere.exists()


def test_doctor_counts_what_is_there_and_tries_it(folder: Path, run_akunu: Any) -> None:
    with akunu.load("ember", kv_type="f32", cache_dir=folder) as model:
        model.generate(PROMPT[:300], max_tokens=1)
    before = sorted(folder.rglob("*"))
    done = run_akunu("doctor", "--cache-dir", str(folder))
    assert done.returncode == 0, done.stderr
    there = f"{sum(sizes(folder)) / 2**20:.1f} MiB in 5 files of 2 models"
    assert there in done.stdout
    assert "kept and found" in done.stdout
    assert sorted(folder.rglob("*")) == before
    assert "prefixes on the disk" not in run_akunu("doctor").stdout


def test_a_disk_without_room_is_noted_at_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)
    for free, notes in (
        (10_000, ["has 10000 bytes left: no more prefixes are kept there"]),
        (1 << 30, []),
    ):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: usage._replace(free=free))
        with akunu.load("ember", context=512, cache_dir=tmp_path) as model:
            assert len(model.notes) == len(notes)
            assert all(part in note for part, note in zip(notes, model.notes, strict=True))


def test_a_size_without_a_folder_is_noted() -> None:
    with akunu.load("ember", context=512, cache_size=1 << 20) as model:
        assert model.notes == ("cache_size is set without cache_dir: the disk is not used",)


def test_doctor_says_what_is_wrong_with_a_folder(tmp_path: Path, run_akunu: Any) -> None:
    (tmp_path / "file").write_text("x")
    done = run_akunu("doctor", "--cache-dir", str(tmp_path / "file"))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("file cannot be read: Not a directory")
    assert "problem" in done.stdout
