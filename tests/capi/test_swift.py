"""The Swift package: built, tested and its example run where a Swift toolchain is.

`AKUNU_C_PREFIX` says where `cmake --install` put the library.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import encoder_models
import pytest
import speech_models
from test_c_speech import Samples, by_python, noise, wav

import akunu
from akunu.templates.chat_template import ChatTemplate, encode_chat

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "bindings" / "swift"
SOURCES = "\n".join(path.read_text() for path in sorted(PACKAGE.glob("Sources/Akunu/*.swift")))
EMBER = Path(akunu.__file__).parent / "data" / "ember-q8_0.gguf"

# What the Swift package leaves to the C library, and why.
NOT_WRAPPED = {
    "akunu_generate": "akunu_start does it, without a thread",
    "akunu_generate_text": "likewise",
    "akunu_profile": "for those who work on the engine",
    **dict.fromkeys(
        ("akunu_open_gguf", "akunu_close_gguf", "akunu_get_n_tensors", "akunu_get_tensor",
         "akunu_get_n_keys", "akunu_get_key", "akunu_get_string", "akunu_get_integer",
         "akunu_get_number"),
        "the reader of files",
    ),
    "akunu_embed_tokens": "Model.embed takes texts",
}  # fmt: skip
REFUSED = {"grammar", "json_schema", "regex"}
"""Settings that the C library itself refuses."""


MANIFEST = """\
// swift-tools-version: 6.0
import PackageDescription

let package = Package(
  name: "page",
  platforms: [.macOS(.v13)],
  dependencies: [.package(name: "Akunu", path: "{package}")],
  targets: [
    .executableTarget(name: "page", dependencies: [.product(name: "Akunu", package: "Akunu")])
  ]
)
"""


class Swift:
    """The package manager, which finds the installed library by pkg-config."""

    def __init__(self, prefix: Path, build: Path) -> None:
        folder = next(prefix.glob("lib*/**/pkgconfig"))
        self.environment = {**os.environ, "PKG_CONFIG_PATH": str(folder)}
        self.build = build  # not in the checkout, which may be read-only
        # Programs know where the library is: on macOS the environment cannot tell them.
        self.options = ["-Xlinker", "-rpath", "-Xlinker", str(folder.parent)]

    def run(
        self,
        command: str,
        *arguments: str | Path,
        text: str = "",
        package: Path = PACKAGE,
        **environment: str,
    ) -> subprocess.CompletedProcess[str]:
        place = ["--scratch-path", self.build / package.name]
        return subprocess.run(
            ["swift", command, *place, *self.options, *arguments], cwd=package, input=text,
            capture_output=True, text=True,
            env={**self.environment, **environment}, timeout=1500,
        )  # fmt: skip


@pytest.fixture(scope="module")
def swift(tmp_path_factory: pytest.TempPathFactory) -> Swift:
    if shutil.which("swift") is None:
        pytest.skip("there is no Swift toolchain (swift) here")
    folder = os.environ.get("AKUNU_C_PREFIX")
    if not folder:
        pytest.skip("AKUNU_C_PREFIX does not say where libakunu is installed")
    # One for all processes of this run: the package manager lets one build at a time.
    base = tmp_path_factory.getbasetemp()
    build = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "swift-build"
    tool = Swift(Path(folder), build)
    built = tool.run("build", "--build-tests")
    assert built.returncode == 0, built.stdout + built.stderr
    assert "warning:" not in built.stdout + built.stderr
    return tool


def write_speech(folder: Path) -> None:
    """Write a Whisper model, audio, and what the Python package hears in it with C's settings."""
    spec = speech_models.SpeechSpec()
    model = speech_models.write(folder / "model", spec, speech_models.random_tensors(spec))
    samples = noise(15)
    (folder / "speech.f32").write_bytes(samples.tobytes())
    (folder / "speech.wav").write_bytes(wav(samples))
    cases: dict[str, tuple[Samples, dict[str, Any]]] = {
        "plain": (samples, {}),
        "short": (samples[: 5 * 16_000], {}),
        "options": (
            samples,
            {
                "language": "de",
                "task": "translate",
                "temperature": (0.0, 0.5),
                "best_of": 2,
                "prompt": " so it was ",
                "without_timestamps": True,
                "condition_on_previous_text": False,
                "seed": 11,
            },
        ),
    }
    names = ("id", "start", "end", "text", "tokens")
    with akunu.load_whisper(model, threads=1, device="cpu") as known:
        for name, (heard, options) in cases.items():
            segments = by_python(known, heard, **options).segments
            told = [{key: getattr(each, key) for key in names} for each in segments]
            (folder / f"{name}.json").write_text(json.dumps(told), encoding="utf-8")


def test_the_tests_of_the_package_pass(swift: Swift, tmp_path: Path) -> None:
    write_speech(tmp_path)
    spec = encoder_models.EncoderSpec()
    model = tmp_path / "embeds.gguf"
    encoder_models.write_gguf(model, spec, encoder_models.random_tensors(spec))
    folder = Path(os.environ.get("AKUNU_TEST_VOCABS", ROOT.parent / "shared" / "vocab"))
    vocabularies = ":".join(map(str, sorted(folder.glob("*.gguf"))))
    done = swift.run(
        "test", "--skip-build", AKUNU_MODEL=str(EMBER), AKUNU_EMBEDDING_MODEL=str(model),
        AKUNU_VOCABULARIES=vocabularies, AKUNU_SPEECH_FOLDER=str(tmp_path),
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    passed = re.search(r"Test run with (\d+) tests passed", said)
    assert passed, said
    declared = sum(path.read_text().count("@Test") for path in PACKAGE.glob("Tests/**/*.swift"))
    assert int(passed[1]) == declared
    assert "skipped" not in said


def test_the_example_holds_a_conversation(swift: Swift) -> None:
    done = swift.run("run", "--skip-build", "chat", EMBER, text="Hello\nAnd now?\n")
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


def test_the_example_says_what_is_wrong(swift: Swift) -> None:
    done = swift.run("run", "--skip-build", "chat", "missing.gguf")
    assert done.returncode == 1
    assert "missing.gguf" in done.stderr
    assert swift.run("run", "--skip-build", "chat").returncode == 2


def test_the_page_of_the_documentation_runs(swift: Swift, tmp_path: Path) -> None:
    write_speech(tmp_path)
    page = (ROOT / "docs" / "reference" / "c.md").read_text()
    program = "\n".join(re.findall(r"^```swift\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    for name, path in (
        ("model.gguf", EMBER),
        ("whisper-tiny", tmp_path / "model"),
        ("speech.wav", tmp_path / "speech.wav"),
    ):
        assert f'"{name}"' in program
        program = program.replace(f'"{name}"', f'"{path}"')
    (tmp_path / "Package.swift").write_text(MANIFEST.format(package=PACKAGE))
    sources = tmp_path / "Sources" / "page"
    sources.mkdir(parents=True)
    (sources / "main.swift").write_text(program)
    done = swift.run("run", "page", package=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    with akunu.load(EMBER) as model:
        assert model.generate("The sea is", max_tokens=32, temperature=0.0).text in done.stdout
    with akunu.load_whisper(tmp_path / "model", threads=1, device="cpu") as known:
        heard = by_python(known, noise(15), language="en").segments
    assert heard
    assert "".join(f"{each.start} {each.end} {each.text}\n" for each in heard) in done.stdout


def test_every_function_is_wrapped_or_left_out_for_a_reason() -> None:
    header = (ROOT / "include" / "akunu" / "akunu.h").read_text()
    declared = set(re.findall(r"\b(akunu_\w+)\(", header.split("---- life ----", 1)[1]))
    used = set(re.findall(r"\b(akunu_\w+)\(", SOURCES)) & declared
    assert used.isdisjoint(NOT_WRAPPED)
    assert used | set(NOT_WRAPPED) == declared


def test_every_status_and_every_setting_is_known() -> None:
    types = (ROOT / "include" / "akunu" / "types.h").read_text()
    statuses = set(re.findall(r"\b(AKUNU_ERROR_\w+) =", types))
    # No room in a buffer is met by a larger one; INTERNAL is what is left.
    assert statuses - set(re.findall(r"AKUNU_ERROR_\w+", SOURCES)) == {"AKUNU_ERROR_INTERNAL"}
    for name in (
        "load_options",
        "sampling",
        "generate_options",
        "chat_options",
        "transcribe_options",
    ):
        body = re.search(rf"typedef struct akunu_{name} {{(.*?)}} akunu_{name};", types, re.DOTALL)
        assert body
        without_comments = re.sub(r"/\*.*?\*/", "", body[1], flags=re.DOTALL)
        fields = re.findall(r"(\w+);", without_comments)
        assert len(fields) > 2
        for field in set(fields) - REFUSED:
            assert re.search(rf"\b{field}\b", SOURCES), f"{name}.{field}"


def test_the_package_has_no_dependencies() -> None:
    assert ".package(" not in (PACKAGE / "Package.swift").read_text()
