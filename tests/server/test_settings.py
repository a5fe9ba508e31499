"""Settings: one name each, on the command line, in a file, in the environment and on the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from akunu import ArgumentError, MisuseError
from akunu.server.configuration import Configured, from_environment, from_file
from akunu.server.http.keys import Keys
from akunu.server.run import check_reach
from akunu.server.settings import ServerSettings, declared_settings
from lines import each_line

PAGE = Path(__file__).parents[2] / "docs/reference/options.md"


def test_a_file_has_settings_and_models(tmp_path: Path) -> None:
    path = tmp_path / "akunu.toml"
    path.write_text('[serve]\nport = 80\nmax-body = 5\nmodels = ["a=ember", "b.gguf"]\n')
    found = from_file(path)
    assert found == Configured({"port": 80, "max_body": 5}, ["a=ember", "b.gguf"])
    path.write_text('[serve.models]\na = "ember"\n')
    assert from_file(path) == Configured({}, ["a=ember"])


@each_line(
    ("text", "message"),
    [
        ("port = 80", "table \\[serve\\]"),
        ("[serve]\nprot = 80", "no setting 'prot'"),
        ("[serve]\nmodels = 3", "models must be a list"),
        ("[serve", "akunu.toml"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "akunu.toml"
    path.write_text(text)
    with pytest.raises(ArgumentError, match=message):
        from_file(path)


def test_without_a_file_there_are_no_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert from_file(None) == Configured()
    with pytest.raises(ArgumentError, match="No such file"):
        from_file(tmp_path / "other.toml")


def test_the_environment_has_settings() -> None:
    given = {
        "AKUNU_SERVE_LOG_PROMPTS": "yes",
        "AKUNU_SERVE_IDLE_SECONDS": "1.5",
        "AKUNU_SERVE_PORT": "9",
        "AKUNU_SERVE_CORS_ORIGINS": "http://a, http://b",
        "AKUNU_SERVE_THREADS": "3",
        "AKUNU_CPU_ISA": "avx2",
    }
    assert from_environment(given) == {
        "log_prompts": True,
        "idle_seconds": 1.5,
        "port": 9,
        "threads": 3,
        "cors_origins": ["http://a", "http://b"],
    }
    assert from_environment({"AKUNU_SERVE_THREADS": "auto"}) == {"threads": "auto"}
    assert ServerSettings(threads="auto").load_options.threads == "auto"
    with pytest.raises(ArgumentError, match="AKUNU_SERVE_PROT is set"):
        from_environment({"AKUNU_SERVE_PROT": "1"})
    with pytest.raises(ArgumentError, match="port is 'x'"):
        ServerSettings(**from_environment({"AKUNU_SERVE_PORT": "x"}))


@each_line(
    ("settings", "message"),
    [
        ({"port": -1}, "port is -1"),
        ({"tls_key": "a"}, "need each other"),
        ({"default_max_tokens": 9, "most_tokens": 8}, "must not be more than"),
        ({"device": 3}, "device is 3"),
        ({"threads": "many"}, "threads is 'many'; it must be an integer from 1 to 256 or \"auto\""),
        ({"threads": 1000}, "threads is 1000"),
        ({"kv_type": "q4"}, "kv_type is 'q4'"),
        ({"access_log": "xml"}, "access_log is 'xml'"),
        ({"without_key": "yes"}, "without_key is 'yes'"),
        ({"cors_origins": ["foo"]}, "cors_origins has 'foo'"),
        ({"cors_origins": ["*", "https://example.org/"]}, "without a path"),
        ({"cors_origins": ["https://Example.org"]}, "no browser sends"),
        ({"cors_origins": ["https://example.org:443"]}, "no browser sends"),
        ({"unix_socket_mode": "rw"}, "unix_socket_mode is 'rw'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        ServerSettings(**settings)  # type: ignore[arg-type]
    with pytest.raises(MisuseError, match="did you mean 'port'"):
        ServerSettings(prot=1)  # type: ignore[call-arg]


def test_origins_are_as_browsers_send_them() -> None:
    origins = ("*", "https://example.org", "http://localhost:3000", "app://main")
    assert ServerSettings(cors_origins=origins).cors_origins == origins


def test_keys_are_not_shown() -> None:
    assert "secret" not in repr(ServerSettings(api_keys=["secret"]))  # type: ignore[arg-type]


@each_line("host", ["0.0.0.0", "::", "192.168.1.2", "example.org"])
def test_beyond_this_machine_a_key_is_needed(host: str, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="there is no API key"):
        check_reach(ServerSettings(host=host))
    check_reach(ServerSettings(host=host, without_key=True))
    keys = tmp_path / "keys"
    keys.write_text("# mine\n\nabc  \n")
    check_reach(ServerSettings(host=host, api_key_file=keys))
    check_reach(ServerSettings(host=host, unix_socket=tmp_path / "socket"))


@each_line("host", ["127.0.0.1", "localhost", "::1", "127.9.9.9"])
def test_this_machine_needs_no_key(host: str) -> None:
    check_reach(ServerSettings(host=host))


def test_a_file_of_keys_has_some(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    with pytest.raises(ArgumentError, match="No such file"):
        Keys.of(ServerSettings(api_key_file=path))
    path.write_text("# none yet\n")
    with pytest.raises(ArgumentError, match="has no key"):
        Keys.of(ServerSettings(api_key_file=path))
    path.write_bytes(b"\xef\xbb\xbfsecret\n")  # as Windows' Notepad writes it
    keys = Keys.of(ServerSettings(api_key_file=path))
    assert keys.owner({b"authorization": b"Bearer secret"}) is not None


def test_the_page_names_every_setting() -> None:
    page = PAGE.read_text()
    for name in declared_settings():
        assert f"`{name}`" in page, name
