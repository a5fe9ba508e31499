"""Models at any address, in akunu's own cache."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hub_server import Hub, Repo
from hub_support import EMBER, Impatient, split

import akunu
from akunu import ArgumentError, DownloadError, LoadOptions, ModelFormatError
from akunu.hub.find import fetchable
from akunu.loading import fetch


def test_an_address_is_fetched_once_into_akunus_cache(hub: Hub, home: Path, ember: bytes) -> None:
    hub.plain["/files/ember.gguf"] = ember
    address = f"{hub.address}/files/ember.gguf"
    with pytest.raises(ArgumentError, match="not on this machine"):
        akunu.load(address, local_only=True)
    with akunu.load(address, context=64) as model:
        assert model.path.read_bytes() == ember
        assert model.path.is_relative_to(home / ".cache/akunu/models")
        assert model.path.name == "ember.gguf"
        path = model.path
    hub.requests.clear()
    assert akunu.pull(address) == path
    assert hub.requests == []


def test_the_cache_is_where_xdg_says(
    hub: Hub, tmp_path: Path, ember: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    hub.plain["/ember.gguf"] = ember
    path = akunu.pull(f"{hub.address}/ember.gguf")
    assert path.is_relative_to(tmp_path / "elsewhere/akunu/models")


def test_an_address_of_the_hub_is_its_repository(hub: Hub, ember: bytes) -> None:
    hub.repos["org/name"] = Repo({"ember.gguf": ember})
    by_address = akunu.pull(f"{hub.address}/org/name/resolve/main/ember.gguf?download=true")
    assert by_address == akunu.pull("org/name")
    assert akunu.pull(f"{hub.address}/org/name/blob/main/ember.gguf") == by_address


def interrupt(address: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        fetch(fetchable(address), LoadOptions(), Impatient(), must_fit=False)


def rests(hub: Hub) -> list[str]:
    """The ranges from somewhere to the end that were requested."""
    found = [each.headers.get("range", "") for each in hub.requests]
    return [each for each in found if re.fullmatch(r"bytes=\d+-", each)]


def test_an_interrupted_download_goes_on_if_the_file_is_the_same(hub: Hub, ember: bytes) -> None:
    hub.plain["/ember.gguf"] = ember
    hub.plain_headers = {"ETag": '"one"'}
    interrupt(f"{hub.address}/ember.gguf")
    assert akunu.pull(f"{hub.address}/ember.gguf").read_bytes() == ember
    assert len(rests(hub)) == 1


def test_a_file_that_changed_meanwhile_is_fetched_from_its_beginning(
    hub: Hub, ember: bytes
) -> None:
    hub.plain["/ember.gguf"] = bytes(len(ember))
    hub.plain_headers = {"ETag": '"one"'}
    hub.plain["/ember.gguf"] = ember[:-64] + b"\1" * 64
    interrupt(f"{hub.address}/ember.gguf")
    hub.plain["/ember.gguf"] = ember
    hub.plain_headers = {"ETag": '"two"'}
    assert akunu.pull(f"{hub.address}/ember.gguf").read_bytes() == ember
    assert rests(hub) == []


def test_a_file_without_etag_is_never_put_together_from_two_attempts(
    hub: Hub, ember: bytes
) -> None:
    hub.plain["/ember.gguf"] = ember
    interrupt(f"{hub.address}/ember.gguf")
    assert akunu.pull(f"{hub.address}/ember.gguf").read_bytes() == ember
    assert rests(hub) == []


def test_all_parts_of_a_split_model_come_from_one_address(hub: Hub, tmp_path: Path) -> None:
    parts = split(EMBER, tmp_path, 2)
    for part in parts:
        hub.plain[f"/{part.name}"] = part.read_bytes()
    first = akunu.pull(f"{hub.address}/{parts[1].name}?key=1")
    assert first.name == parts[0].name
    for part in parts:
        assert (first.parent / part.name).read_bytes() == part.read_bytes()
    with akunu.load(f"{hub.address}/{parts[0].name}?key=1", local_only=True) as model:
        assert model.path == first


def test_what_is_no_model_is_refused_before_the_download(hub: Hub) -> None:
    hub.plain["/page.gguf"] = b"<html>please log in</html>" + b" " * 3_000_000
    with pytest.raises(ModelFormatError, match="an HTML page"):
        akunu.pull(f"{hub.address}/page.gguf")
    hub.plain_headers = {"Content-Type": "text/html; charset=utf-8"}
    with pytest.raises(DownloadError, match=r"sends a web page.*open the address in a browser"):
        akunu.pull(f"{hub.address}/page.gguf")
    assert "" not in {each.headers.get("range", "") for each in hub.requests}


def test_errors_of_a_server_name_the_address_without_its_secrets(hub: Hub) -> None:
    host = hub.address.removeprefix("http://")
    with pytest.raises(DownloadError) as caught:
        akunu.pull(f"http://me:secret@{host}/none.gguf?signature=secret")
    message = str(caught.value)
    assert (
        message == f"http://{host}/none.gguf: the server answers 404 Not Found; check the spelling"
    )
