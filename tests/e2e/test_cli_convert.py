"""`akunu convert`, and directories as IN of `akunu quantize`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest
from cli_support import EMBER

import akunu

sys.path.insert(0, str(Path(__file__).parent.parent / "models"))

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import hf_directory
    from random_models import KINDS, random_weights

    spec = KINDS["llama-32"]
    path = tmp_path_factory.mktemp("convert") / "tiny-llama"
    return hf_directory.write(path, spec, random_weights(spec, seed=1), dtype="BF16")


def test_a_directory_becomes_a_file_that_says_the_same(
    run_akunu: Run, folder: Path, tmp_path: Path
) -> None:
    target = tmp_path / "tiny.gguf"
    done = run_akunu("convert", str(folder), str(target), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["bytes"] == target.stat().st_size
    fields = {name: each.contents() for name, each in gguf.GGUFReader(target).fields.items()}
    assert fields["general.name"] == "tiny-llama"
    assert fields["general.file_type"] == gguf.LlamaFileType.MOSTLY_BF16
    tokens = list(range(40))
    with akunu.load(folder, kv_type="f32") as one, akunu.load(target, kv_type="f32") as other:
        a, b = one.logits(tokens), other.logits(tokens)
    assert np.abs(a - b).max() <= 1e-3 * np.abs(a).max()


def test_quantize_takes_a_directory_and_writes_what_it_writes_of_the_converted_file(
    run_akunu: Run, folder: Path, tmp_path: Path
) -> None:
    whole, straight, twice = (tmp_path / f"{name}.gguf" for name in ("whole", "straight", "twice"))
    for arguments in (
        ("convert", folder, whole),
        ("quantize", folder, straight, "Q4_0"),
        ("quantize", whole, twice, "Q4_0"),
    ):
        done = run_akunu(*map(str, arguments))
        assert done.returncode == 0, done.stderr
    assert straight.read_bytes() == twice.read_bytes()


@pytest.mark.parametrize("command", ["convert", "quantize"])
def test_no_file_of_the_directory_that_is_read_is_written_over(
    run_akunu: Run, folder: Path, tmp_path: Path, command: str
) -> None:
    model = Path(shutil.copytree(folder, tmp_path / "model"))
    type_name = ["Q4_0"] if command == "quantize" else []
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        before = (model / name).read_bytes()
        done = run_akunu(command, str(model), str(model / name), *type_name, "--force")
        assert done.returncode == 1
        assert f"{name} is the file to read; name another file" in done.stderr
        assert (model / name).read_bytes() == before
    beside = [str(model / "made.gguf"), *type_name, "--force"]
    for _ in range(2):
        assert run_akunu(command, str(model), *beside).returncode == 0


def test_a_gguf_file_is_not_converted(run_akunu: Run, tmp_path: Path) -> None:
    done = run_akunu("convert", str(EMBER), str(tmp_path / "x.gguf"))
    assert done.returncode == 1
    assert "is not a Hugging Face or MLX directory" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_what_a_file_cannot_say_is_refused_and_nothing_is_left(
    run_akunu: Run, folder: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for file in folder.iterdir():
        (other / file.name).write_bytes(file.read_bytes())
    described = json.loads((other / "tokenizer.json").read_text())
    described["pre_tokenizer"]["use_regex"] = False
    (other / "tokenizer.json").write_text(json.dumps(described))
    done = run_akunu("convert", str(other), str(tmp_path / "x.gguf"))
    assert done.returncode == 1
    assert "tokenizer.ggml.pre has no name for" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other"]
