"""The examples, built as a user would: from an installed libakunu, by CMake and by pkg-config.

`AKUNU_C_PREFIX` says where `cmake --install` put the library.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import wave
from pathlib import Path

import pytest

import akunu
from akunu.speech.audio import load_audio
from akunu.templates.chat_template import ChatTemplate, encode_chat

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "c"
EMBER = Path(akunu.__file__).parent / "data" / "ember-q8_0.gguf"


@pytest.fixture(scope="module")
def prefix() -> Path:
    folder = os.environ.get("AKUNU_C_PREFIX")
    if not folder:
        pytest.skip("AKUNU_C_PREFIX does not say where libakunu is installed")
    return Path(folder)


@pytest.fixture(scope="module")
def built(prefix: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    build = tmp_path_factory.mktemp("examples")
    configure = ["cmake", "-S", EXAMPLES, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}"]
    subprocess.run(configure, check=True, capture_output=True)
    subprocess.run(["cmake", "--build", build], check=True, capture_output=True)
    return build


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_a_text_goes_on(built: Path) -> None:
    done = run(built / "complete", EMBER, "The sea is")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert re.search(r"\d+ tokens, the first after", done.stderr)
    failed = run(built / "complete", "missing.gguf", "The sea is")
    assert failed.returncode == 1
    assert "missing.gguf" in failed.stderr


def test_a_conversation_goes_on(built: Path) -> None:
    done = subprocess.run(
        [built / "chat", EMBER], input="Hello\nAnd now?\n", capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    replies: list[str] = []
    with akunu.load(EMBER) as model:
        template = ChatTemplate.of(model.tokenizer)
        messages = []
        for question in ("Hello", "And now?"):
            messages.append({"role": "user", "content": question})
            prompt = encode_chat(model.tokenizer, template, messages)
            replies.append(model.generate(prompt, max_tokens=256, temperature=0.0).text)
            messages.append({"role": "assistant", "content": replies[-1]})
    assert done.stdout == "".join(f"> {reply}\n" for reply in replies) + "> "


def test_tokens_are_shown(built: Path) -> None:
    done = run(built / "tokens", EMBER, "Hello, world")
    assert done.returncode == 0, done.stderr
    shown = [int(line.split()[0]) for line in done.stdout.splitlines()]
    assert shown == akunu.Tokenizer.from_gguf(EMBER).encode("Hello, world")


def test_a_model_that_generates_has_no_embeddings(built: Path) -> None:
    done = run(built / "embed", EMBER, "a cat", "a kitten")
    assert done.returncode == 1
    assert "has no embeddings" in done.stderr


@pytest.mark.real
def test_alike_texts_are_close(built: Path) -> None:
    models = os.environ.get("AKUNU_REAL_MODELS")
    if not models:
        pytest.skip("AKUNU_REAL_MODELS is not set")
    files = sorted((Path(models) / "minilm").glob("*.gguf"))
    if not files:
        pytest.skip("there is no GGUF file of MiniLM")
    done = run(built / "embed", files[0], "a cat", "a kitten", "a tractor")
    kitten, tractor = (float(line.split()[0]) for line in done.stdout.splitlines())
    assert kitten > tractor + 0.2


@pytest.mark.real
def test_speech_is_written_down(built: Path, tmp_path: Path) -> None:
    models, speech = os.environ.get("AKUNU_REAL_MODELS"), os.environ.get("AKUNU_REAL_SPEECH")
    if not models or not speech:
        pytest.skip("AKUNU_REAL_MODELS or AKUNU_REAL_SPEECH is not set")
    samples = load_audio(Path(speech) / "conf-adminmenu-162.wav")
    path = tmp_path / "speech.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes((samples * 32767).round().astype("<i2").tobytes())
    done = run(built / "transcribe", Path(models) / "whisper-tiny.en", path)
    assert done.returncode == 0, done.stderr
    assert "Please press 1 to mute or unmute yourself." in done.stdout
    assert re.search(r"seconds, en \(probability 1\.00\), \d+ segments", done.stderr)
    failed = run(built / "transcribe", Path(models) / "whisper-tiny.en", EMBER)
    assert failed.returncode == 1
    assert "no WAV file" in failed.stderr


def test_pkg_config_knows_the_library(prefix: Path, tmp_path: Path) -> None:
    if shutil.which("pkg-config") is None:
        pytest.skip("pkg-config is not installed")
    folder = next(prefix.glob("lib*/**/pkgconfig"))
    environment = {**os.environ, "PKG_CONFIG_PATH": str(folder)}
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "akunu"],
        check=True, capture_output=True, text=True, env=environment,
    ).stdout.split()  # fmt: skip
    program = tmp_path / "tokens"
    libraries = folder.parent
    source = EXAMPLES / "tokens.c"
    subprocess.run(
        ["cc", "-std=c11", source, *flags, f"-Wl,-rpath,{libraries}", "-o", program], check=True
    )
    assert run(program, EMBER, "Hello").returncode == 0


def test_only_names_of_akunu_are_exported(prefix: Path) -> None:
    library = next(prefix.glob("lib*/**/libakunu.so"))
    listed = run("nm", "-D", "--defined-only", library).stdout.split("\n")
    names = [line.split()[-1] for line in listed if line]
    header = (prefix / "include" / "akunu" / "akunu.h").read_text()
    declared = set(re.findall(r"\b(akunu_\w+)\(", header.split("---- life ----", 1)[1]))
    assert set(names) == declared


def test_examples_are_short() -> None:
    for source in EXAMPLES.glob("*.c"):
        assert len(source.read_text().splitlines()) < 80, source


def test_a_program_may_hold_the_library_itself(prefix: Path, tmp_path: Path) -> None:
    configure = ["cmake", "-S", EXAMPLES, "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}"]
    configure.append("-DAKUNU_LIBRARY=akunu::akunu_static")
    subprocess.run(configure, check=True, capture_output=True)
    subprocess.run(
        ["cmake", "--build", tmp_path, "-t", "complete"], check=True, capture_output=True
    )
    if sys.platform == "linux":
        assert "libakunu" not in run("ldd", tmp_path / "complete").stdout
    done = run(tmp_path / "complete", EMBER, "The sea is")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
