"""Models from a repository of the hub: fetched whole, checked, resumed, found again."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hub_server import TOKEN, Hub, Repo, git_id, sha256
from hub_support import EMBER, Impatient, of_architecture, split

import akunu
from akunu import (
    ArgumentError,
    DownloadError,
    LoadOptions,
    ModelFormatError,
    OutOfMemoryError,
    UnsupportedModelError,
)
from akunu.hub import transfer
from akunu.hub.find import fetchable
from akunu.hub.load_check import headers_only as outline_of
from akunu.hub.names import RepoName
from akunu.hub.repository import look_up
from akunu.hub.watch import Watch
from akunu.loading import fetch

REPO = "small/Ember-GGUF"


@pytest.fixture
def repo(hub: Hub, ember: bytes) -> Repo:
    """A repository with Ember and a note."""
    hub.repos[REPO] = Repo({"README.md": b"# Ember", "ember-q8_0.gguf": ember})
    return hub.repos[REPO]


def blobs(home: Path) -> dict[str, int]:
    folder = home / ".cache/huggingface/hub/models--small--Ember-GGUF/blobs"
    return {path.name: path.stat().st_size for path in folder.iterdir()}


def test_a_pulled_model_is_the_file_of_the_repository(hub: Hub, repo: Repo, ember: bytes) -> None:
    path = akunu.pull(REPO)
    assert path.name == "ember-q8_0.gguf"
    assert path.read_bytes() == ember
    with akunu.load(REPO) as model:
        assert model.path == path


def test_load_fetches_what_is_missing_and_asks_nobody_when_it_is_here(hub: Hub, repo: Repo) -> None:
    with akunu.load(f"{REPO}:Q8_0", context=64) as first:
        path = first.path
    assert hub.contents()
    hub.requests.clear()
    for name in (REPO, f"{REPO}:q8_0", f"{REPO}:ember-q8_0.gguf", f"hf.co/{REPO}:ember-q8_0"):
        with akunu.load(name, context=64, local_only=True) as again:
            assert again.path == path
    assert hub.requests == []


def test_local_only_says_how_to_get_a_model(hub: Hub, repo: Repo) -> None:
    with pytest.raises(ArgumentError, match=rf"run `akunu pull {REPO}:Q8_0`"):
        akunu.load(f"{REPO}:Q8_0", local_only=True)
    assert hub.requests == []


def test_other_programs_find_the_model_where_huggingface_hub_puts_it(
    hub: Hub, repo: Repo, home: Path, ember: bytes
) -> None:
    from huggingface_hub import hf_hub_download, scan_cache_dir, try_to_load_from_cache

    path = akunu.pull(REPO)
    cache = home / ".cache/huggingface/hub"
    assert try_to_load_from_cache(REPO, "ember-q8_0.gguf") == str(path)
    assert hf_hub_download(REPO, "ember-q8_0.gguf", local_files_only=True) == str(path)
    found = scan_cache_dir(cache)
    assert not found.warnings
    assert [repo.repo_id for repo in found.repos] == [REPO]
    assert blobs(home) == {sha256(ember): len(ember)}


def test_a_model_that_another_program_fetched_is_not_fetched_again(hub: Hub, repo: Repo) -> None:
    from huggingface_hub import hf_hub_download

    path = hf_hub_download(REPO, "ember-q8_0.gguf")
    hub.requests.clear()
    with akunu.load(f"{REPO}:Q8_0", context=64) as model:
        assert str(model.path) == path
    assert str(akunu.pull(REPO)) == path
    assert hub.contents() == []


def test_a_new_state_of_a_repository_is_fetched_by_pull_only(
    hub: Hub, repo: Repo, ember: bytes
) -> None:
    old = akunu.pull(REPO)
    changed = ember + b"\0" * 32
    hub.repos[REPO] = Repo({"ember-q8_0.gguf": changed}, commit="b" * 40)
    with akunu.load(REPO, context=64) as model:
        assert model.path == old
    new = akunu.pull(REPO)
    assert new.read_bytes() == changed
    with akunu.load(REPO, context=64) as model:
        assert model.path == new


def test_the_same_contents_under_a_new_commit_are_not_fetched_again(hub: Hub, repo: Repo) -> None:
    akunu.pull(REPO)
    repo.commit = "b" * 40
    hub.requests.clear()
    assert "b" * 40 in str(akunu.pull(REPO))
    assert hub.contents() == []


def test_an_interrupted_download_goes_on_where_it_was(
    hub: Hub, repo: Repo, ember: bytes, home: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        fetch(fetchable(REPO), LoadOptions(), Impatient(), must_fit=True)
    [(name, here)] = blobs(home).items()
    assert name == f"{sha256(ember)}.incomplete"
    assert 0 < here < len(ember)
    hub.requests.clear()
    assert akunu.pull(REPO).read_bytes() == ember
    assert hub.contents()[-1] == f"bytes={here}-"
    assert blobs(home) == {sha256(ember): len(ember)}


def test_a_connection_that_breaks_is_taken_up_again(hub: Hub, repo: Repo, ember: bytes) -> None:
    hub.break_after = [2_000_000, 4_000_000]
    assert akunu.pull(REPO).read_bytes() == ember
    rests = [each for each in hub.contents() if not re.fullmatch(r"bytes=\d+-\d+", each)]
    assert rests == ["", "bytes=2000000-", "bytes=6000000-"]


def test_a_server_that_ignores_ranges_is_read_from_the_beginning(
    hub: Hub, repo: Repo, ember: bytes
) -> None:
    hub.ignores_ranges = True
    hub.break_after = [2_000_000]
    assert akunu.pull(REPO).read_bytes() == ember


def test_contents_that_are_not_what_the_hub_promised_are_deleted(
    hub: Hub, repo: Repo, home: Path
) -> None:
    hub.damage = True
    with pytest.raises(
        DownloadError, match=r"the download is not the file .*checksum.*deleted, try"
    ):
        akunu.pull(REPO)
    assert blobs(home) == {}


def test_a_file_that_is_in_git_itself_is_checked_by_its_git_checksum(
    hub: Hub, repo: Repo, ember: bytes, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    monkeypatch.setattr("hub_server.LFS_FROM", len(ember) + 1)
    assert akunu.pull(REPO).read_bytes() == ember
    assert blobs(home) == {git_id(ember): len(ember)}
    hub.damage = True
    repo.files["ember-q8_0.gguf"] = ember + b"\0"
    repo.commit = "b" * 40
    with pytest.raises(DownloadError, match="checksum"):
        akunu.pull(REPO)


def test_a_split_model_is_pulled_whole(hub: Hub, tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    parts = split(EMBER, folder, 3)
    hub.repos[REPO] = Repo({f"Q8_0/{part.name}": part.read_bytes() for part in parts})
    path = akunu.pull(f"{REPO}:Q8_0")
    assert path.name == parts[0].name
    for part in parts:
        assert (path.parent / part.name).read_bytes() == part.read_bytes()
    with akunu.load(f"{REPO}:Q8_0", local_only=True) as model:
        text = model.generate("The sea", max_tokens=5)
    with akunu.load() as whole:
        assert whole.generate("The sea", max_tokens=5) == text
    (path.parent / parts[2].name).unlink()  # what is not whole is not here
    with pytest.raises(ArgumentError, match="not on this machine"):
        akunu.load(f"{REPO}:Q8_0", local_only=True)


def test_an_architecture_that_akunu_lacks_is_refused_before_the_download(
    hub: Hub, repo: Repo, ember: bytes, home: Path
) -> None:
    repo.files["ember-q8_0.gguf"] = of_architecture(ember, b"mamba")
    for run in (akunu.pull, akunu.load):
        with pytest.raises(UnsupportedModelError) as caught:
            run(REPO)
        message = str(caught.value)
        assert message.startswith(f"{REPO}:Q8_0: general.architecture is 'mamba'")
        assert "/tmp" not in message
    assert all(re.fullmatch(r"bytes=\d+-\d+", each) for each in hub.contents())  # headers only
    assert not (home / ".cache/huggingface/hub/models--small--Ember-GGUF/blobs").exists()


def test_the_header_of_a_file_is_read_by_ranges_only(hub: Hub, repo: Repo) -> None:
    remote = look_up(RepoName(REPO))
    with outline_of(remote.parts(), remote.shown) as path:
        assert path.stat().st_size == remote.choice.candidate.size
        with akunu.load(path, context=64) as outline, akunu.load(context=64) as ember:
            assert outline.config == ember.config
            assert outline.memory == ember.memory
    assert hub.contents() == [f"bytes=0-{2**20 - 1}"]


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"<!doctype html><title>Log in</title>" + b" " * 2000, ModelFormatError, "an HTML page"),
        (b"GGUF\x03\0\0\0" + b"\xff" * 4000, ModelFormatError, "is wrong at byte"),
        (b"GGUF\x03\0\0\0" + b"\0" * 16 + b"\0" * 4000, ModelFormatError, "architecture"),
        (b"PK\x03\x04" + b"\0" * 4000, ModelFormatError, r"begins with .PK"),
    ],
    ids=["page", "nonsense", "empty", "archive"],
)
def test_what_is_no_model_is_named_before_the_download(
    hub: Hub, repo: Repo, content: bytes, error: type[Exception], message: str
) -> None:
    repo.files = {"model.gguf": content}
    with pytest.raises(error, match=message):
        akunu.pull(REPO)
    assert all(re.fullmatch(r"bytes=\d+-\d+", each) for each in hub.contents())


def test_a_disk_without_room_is_noticed_before_the_download(
    hub: Hub, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    full = shutil._ntuple_diskusage(10**9, 10**9 - 5_000_000, 5_000_000)  # type: ignore[attr-defined]
    monkeypatch.setattr(shutil, "disk_usage", lambda path: full)
    with pytest.raises(DownloadError, match=r"needs 10\.8 MiB on disk, 4\.8 MiB are free.*HF_HOME"):
        akunu.pull(REPO)


def test_a_token_goes_to_the_hub_and_to_nobody_else(
    hub: Hub, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.is_gated = True
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    akunu.pull(REPO)
    to_hub = [each for each in hub.requests if "/resolve/" in each.path]
    elsewhere = [each for each in hub.requests if "/cdn/" in each.path]
    assert to_hub
    assert elsewhere
    assert {each.headers.get("authorization") for each in to_hub} == {f"Bearer {TOKEN}"}
    assert {each.headers.get("authorization") for each in elsewhere} == {None}


def test_a_gated_repository_is_explained(
    hub: Hub, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.is_gated = True
    with pytest.raises(DownloadError, match=rf"gated: accept its terms at .*/{REPO}.*HF_TOKEN"):
        akunu.pull(REPO)
    monkeypatch.setenv("HF_TOKEN", "hf_of_a_stranger")
    with pytest.raises(DownloadError, match=r"your token may not read it: accept its terms"):
        akunu.pull(REPO)
    monkeypatch.setenv("HF_TOKEN", "hf_mistyped")
    with pytest.raises(DownloadError, match=r"does not know your token"):
        akunu.pull(REPO)


def test_what_does_not_exist_is_named(hub: Hub, repo: Repo) -> None:
    with pytest.raises(DownloadError, match=r"no model small/Embers at http.*check the spelling"):
        akunu.load("small/Embers")
    with pytest.raises(DownloadError, match=r"has no revision 'v9'"):
        akunu.pull(f"{REPO}@v9")
    with pytest.raises(ArgumentError, match=r"has no 'Q9_0'; did you mean .*:Q8_0\? There is Q8_0"):
        akunu.load(f"{REPO}:Q9_0")
    repo.files = {"model.safetensors": b"x" * 2000}
    with pytest.raises(
        ArgumentError, match=r"with safetensors files \(its weights are \.safetensors\); look"
    ):
        akunu.load(REPO)


def test_a_revision_can_be_a_commit(hub: Hub, repo: Repo, ember: bytes) -> None:
    path = akunu.pull(f"{REPO}@{'a' * 40}:Q8_0")
    hub.requests.clear()
    with akunu.load(f"{REPO}@{'a' * 40}", context=64) as model:
        assert model.path == path
    assert hub.requests == []


def test_offline_mode_is_honoured_and_named(
    hub: Hub, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(DownloadError, match=r"HF_HUB_OFFLINE forbids the network"):
        akunu.load(REPO)
    assert hub.requests == []


def test_no_network_is_one_line_that_names_the_host(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    import socket

    from huggingface_hub import constants

    with socket.socket() as closed:  # bound, so that nobody else listens there
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        monkeypatch.setattr(constants, "ENDPOINT", f"http://{address}")
        with pytest.raises(
            DownloadError, match=rf"no connection to {address} .*check the network.*akunu list"
        ):
            akunu.pull(REPO)


def test_a_network_that_wants_a_login_is_named(hub: Hub, repo: Repo) -> None:
    hub.is_portal = True
    with pytest.raises(DownloadError, match=r"does not answer like the hub; .*login"):
        akunu.pull(REPO)


def test_a_busy_server_is_asked_again(hub: Hub, repo: Repo, ember: bytes) -> None:
    hub.statuses = [503]  # of the request for the header
    assert akunu.pull(REPO).read_bytes() == ember
    assert hub.contents() == [f"bytes=0-{2**20 - 1}"] * 2 + [""]


def test_a_server_that_never_recovers_is_given_up(
    hub: Hub, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "_PAUSES", (0.0,) * 4)
    hub.statuses = [503] * 3
    with pytest.raises(DownloadError, match=r"answers 503 .*; try again later"):
        akunu.pull(REPO)
    hub.break_after = [0] * 5
    with pytest.raises(DownloadError, match=r"ember-q8_0\.gguf: the connection .* broke"):
        akunu.pull(REPO)
    hub.break_after = [7_000_000] + [0] * 5
    with pytest.raises(DownloadError, match=r"6\.7 MiB are kept, and the next attempt"):
        akunu.pull(REPO)


def test_what_does_not_fit_into_memory_is_not_fetched_by_a_load(hub: Hub, repo: Repo) -> None:
    with pytest.raises(OutOfMemoryError, match=r"nothing was downloaded; `akunu pull` downloads"):
        akunu.load(REPO, kv_memory=1)
    assert all(re.fullmatch(r"bytes=\d+-\d+", each) for each in hub.contents())


class Heard(Watch):
    """Keeps the sentences."""

    def __init__(self, on_sentence: Callable[[str], None] = lambda text: None) -> None:
        self.sentences: list[str] = []
        self._on_sentence = on_sentence

    def say(self, text: str) -> None:
        self.sentences.append(text)
        self._on_sentence(text)


def test_a_pull_says_what_it_chose_and_what_it_takes(hub: Hub, repo: Repo) -> None:
    heard = Heard()
    fetch(fetchable(REPO), LoadOptions(context=256), heard, must_fit=True)
    with akunu.load(EMBER, context=256) as model:  # how much depends on the processor
        needed = f"{model.memory['total'] / 2**20:.1f} MiB"
    assert heard.sentences == [
        "ember-q8_0.gguf: the only model in it",
        f"it takes {needed} of memory with a context of 256 tokens",
    ]


def test_two_programs_do_not_fetch_the_same_file_at_once(
    hub: Hub, repo: Repo, home: Path, ember: bytes
) -> None:
    from filelock import FileLock

    locks = home / ".cache/huggingface/hub/.locks/models--small--Ember-GGUF"
    locks.mkdir(parents=True)
    other = FileLock(locks / f"{sha256(ember)}.lock")
    other.acquire()

    def finish(text: str) -> None:
        if "another program" in text:
            blob = home / f".cache/huggingface/hub/models--small--Ember-GGUF/blobs/{sha256(ember)}"
            blob.parent.mkdir(parents=True)
            blob.write_bytes(ember)
            other.release()

    heard = Heard(finish)
    path = fetch(fetchable(REPO), LoadOptions(), heard, must_fit=True)
    assert path.read_bytes() == ember
    assert heard.sentences[-1] == "another program is downloading ember-q8_0.gguf; waiting for it"
    assert all(re.fullmatch(r"bytes=\d+-\d+", each) for each in hub.contents())


def test_the_factors_of_rope_are_fetched_with_the_header(
    hub: Hub, repo: Repo, tmp_path: Path
) -> None:
    [path] = split(EMBER, tmp_path, 1, {"rope_freqs.weight": np.full(32, 2, np.float32)})
    repo.files = {"ember-q8_0.gguf": path.read_bytes()}
    remote = look_up(RepoName(REPO))
    with (
        outline_of(remote.parts(), remote.shown) as outline,
        akunu.load(outline, context=64) as model,
    ):
        assert model.config.rope_dim == 64
    begin, end = map(int, hub.contents()[1].removeprefix("bytes=").split("-"))
    assert repo.files["ember-q8_0.gguf"][begin : end + 1] == np.full(32, 2, np.float32).tobytes()


def test_a_full_disk_is_named_and_what_came_is_kept(hub: Hub, tmp_path: Path) -> None:
    hub.plain["/file"] = bytes(3_000_000)
    full = tmp_path / "file.incomplete"
    full.symlink_to("/dev/full")  # takes nothing
    source = transfer.Source(url=f"{hub.address}/file", shown="file", size=3_000_000)
    with pytest.raises(
        DownloadError, match=r"No space left .* 2\.9 MiB more are needed; free some"
    ):
        transfer.download(source, full, Watch())


def test_more_than_was_promised_is_not_taken(hub: Hub, tmp_path: Path) -> None:
    hub.plain["/file"] = bytes(50_000_000)
    partial = tmp_path / "file.incomplete"
    source = transfer.Source(url=f"{hub.address}/file", shown="file", size=1_000)
    came = Impatient()  # would press Ctrl-C
    with pytest.raises(DownloadError, match=r"bytes arrived, 1000 were expected\); it was deleted"):
        transfer.download(source, partial, came)
    assert not partial.exists()


def test_a_proxy_that_cannot_be_reached_is_named(
    hub: Hub, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    import socket

    from huggingface_hub import close_session

    close_session()  # it has read its variables
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        proxy = f"127.0.0.1:{closed.getsockname()[1]}"
        monkeypatch.setenv("http_proxy", f"http://me:secret@{proxy}")
        with pytest.raises(DownloadError, match=rf"through the proxy {proxy} ") as caught:
            akunu.pull(REPO)
    assert "secret" not in str(caught.value)


def test_a_checksum_that_is_none_never_becomes_a_path(
    hub: Hub, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hub_server.sha256", lambda data: "../../../outside")
    with pytest.raises(DownloadError, match="does not report size and checksum"):
        akunu.pull(REPO)
