"""Settings of `akunu ray`: with those of `akunu serve`, from the same places; without Ray."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from akunu import ArgumentError
from akunu.ray.settings import RaySettings
from akunu.ray.settings import cluster_options as asked
from akunu.ray.settings import options_of_serve as asked_of_serve
from akunu.server.settings import declared_settings
from lines import each_line

PAGE = Path(__file__).parents[2] / "docs/reference/options.md"


@pytest.fixture(autouse=True)
def _somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_both_kinds_come_from_command_line_environment_and_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "akunu.toml").write_text(
        '[serve]\nport = 81\nmax_body = 5\nmodels = ["a=ember"]\n'
        "[ray]\nreplicas = 2\nprocessors = 3\nfronts = 4\n"
    )
    monkeypatch.setenv("AKUNU_SERVE_PORT", "82")
    monkeypatch.setenv("AKUNU_RAY_PROCESSORS", "5")
    found = asked([], None, {"replicas": 6, "context": 64, "fronts": None})
    assert (found.server.port, found.server.max_body, found.server.context) == (82, 5, 64)
    assert (found.ray.replicas, found.ray.processors, found.ray.fronts) == (6, 5, 4)
    assert found.sources == {"a": "ember"}
    assert asked(["b=ember"], None, {}).sources == {"b": "ember"}


@each_line(
    ("settings", "message"),
    [
        ({"replicas": 0}, "replicas is 0"),
        ({"replicas": 3, "most_replicas": 2}, "must not be more than most_replicas"),
        ({"replica_gpus": -1}, "replica_gpus is -1"),
        ({"unix_socket": "s"}, "unix_socket is set"),
        ({"read_seconds": 5.0}, "read_seconds is set"),
    ],
)
def test_what_makes_no_sense_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        asked([], None, settings)


def test_a_misspelt_name_in_the_file_or_the_environment_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "akunu.toml").write_text("[ray]\nport = 1\n")
    with pytest.raises(ArgumentError, match="no setting 'port'"):
        asked([], None, {})
    (tmp_path / "akunu.toml").unlink()
    monkeypatch.setenv("AKUNU_RAY_REPLICA", "1")
    with pytest.raises(ArgumentError, match="AKUNU_RAY_REPLICA is set"):
        asked([], None, {})


def test_ray_serve_gives_texts_or_values() -> None:
    texts = asked_of_serve({"models": "a=ember b=ember", "replicas": "2", "without_key": "true"})
    assert list(texts.sources) == ["a", "b"]
    assert texts.ray.replicas == 2
    assert texts.server.without_key is True
    values = asked_of_serve({"models": ["a=ember"], "api_keys": ["x"], "wait_seconds": 5})
    assert values.server.api_keys == ("x",)
    assert values.ray.wait_seconds == 5.0
    assert asked_of_serve({"models": {"a": "ember"}}).sources == {"a": "ember"}


@each_line(
    ("arguments", "message"),
    [
        ({"port": "81"}, "port is set, but Ray Serve listens"),
        ({"host": "0.0.0.0"}, "host is set"),
        ({"cluster": "auto"}, "cluster is set"),
        ({"replica": "2"}, "no setting 'replica'"),
        ({"replicas": "two"}, "replicas is 'two'"),
    ],
)
def test_what_ray_serve_decides_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        asked_of_serve(arguments)


def test_the_page_names_every_setting() -> None:
    page = PAGE.read_text()
    for name, declared in declared_settings(RaySettings).items():
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{name}` |")]
        assert f"| {declared.help} " in row
