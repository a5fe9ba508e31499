"""`akunu complete`, `tokenize`, `inspect`, `doctor`, and what the shell may complete."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_support import COMMAND, EMBER, ENVIRONMENT
from gguf import GGUFReader, GGUFWriter

from lines import each_line

sys.path.append(str(Path(__file__).parents[1] / "models"))

import hf_directory

import akunu

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def one_line(done: subprocess.CompletedProcess[str], code: int) -> str:
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("akunu: error: ")
    return line


def as_json(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_complete_goes_on_from_the_option_the_file_and_the_pipe(
    run_akunu: Run, ember: akunu.Model, tmp_path: Path
) -> None:
    text = "Once upon a time"
    expected = ember.generate(text, max_tokens=9)
    assert expected.strip()
    (tmp_path / "text.txt").write_text(text)
    for arguments, stdin in (
        (["--prompt", text], ""),
        (["-p", text], ""),
        (["--file", "text.txt"], ""),
        (["-f", "-"], text),
        ([], text),
    ):
        done = run_akunu("complete", *arguments, "--max-tokens", "9", stdin=stdin)
        assert done.returncode == 0
        assert done.stdout == expected.text.rstrip("\n") + "\n"
        assert "cut after 9 tokens" in done.stderr


def test_complete_takes_the_text_as_it_is(run_akunu: Run, ember: akunu.Model) -> None:
    with_newline = run_akunu("complete", "--max-tokens", "5", "--json", stdin="The sea\n")
    assert as_json(with_newline)["prompt_tokens"] == len(ember.tokenizer.encode("The sea\n"))


def test_complete_ends_before_a_stop_text(run_akunu: Run, ember: akunu.Model) -> None:
    text = "Once upon a time"
    free = ember.generate(text, max_tokens=20)
    stop = free.text[5:8]
    assert len(stop) == 3
    facts = as_json(
        run_akunu(
            *("complete", "-p", text, "--stop", stop, "--stop", "never", "--json"),
            *("--max-tokens", "20"),
        )
    )
    assert facts["stop"] == stop
    assert facts["finish_reason"] == "stop"
    assert facts["text"] == free.text[: free.text.index(stop)]
    assert len(facts["token_ids"]) <= facts["completion_tokens"]


def test_input_beside_a_prompt_is_left_and_said(run_akunu: Run) -> None:
    done = run_akunu("complete", "-p", "Hello", "--max-tokens", "1", stdin="piped")
    assert done.returncode == 0
    assert "so standard input is not read" in done.stderr


@each_line(
    ("arguments", "code", "words"),
    [
        (["complete", "-p", "a", "-f", "b"], 2, "both set the text"),
        (["complete", "-f", "none.txt"], 1, "none.txt: No such file"),
        (["complete", "-f", "."], 2, "is a directory"),
        (["complete", "-p", "a", "--stop", ""], 2, "stop"),
        (["complete", "-p", "a", "--top-p", "0"], 2, "--top-p is 0; it must be a number from 0 ("),
        (["tokenize", "none.gguf", "-p", "a"], 1, "neither a file nor"),
        (["tokenize", __file__, "-p", "a"], 1, "test_cli_commands.py"),
        (["inspect", "none.gguf"], 1, "neither a file nor"),
        (["complete", "", "-p", "a"], 1, "'' is neither a file nor"),
        (["chat", "-m", "", "-p", "a"], 1, "'' is neither a file nor"),
        (["inspect", __file__], 1, "test_cli_commands.py"),
        (
            ["complete", "-p", "a", "--top-k", "1.5"],
            2,
            "--top-k is 1.5; it must be an integer from",
        ),
        (["complete", "-p", "a", "--seed", r"a\b"], 2, r"--seed is 'a\b'; it must be an integer"),
        (["complete", "-p", "a", "--kv-type", "q8"], 2, "is 'q8'; it must be 'f16' or 'f32'"),
        (["complete", "ember", "-m", "ember", "-p", "a"], 2, "the model is set twice"),
        (
            ["chat", "-p", "a", "--temperature", "hot"],
            2,
            "--temperature is 'hot'; it must be a num",
        ),
        (["bench", "-r", "few"], 2, "'few' is not a whole number"),
        (["inspect", "--context", "0"], 2, "--context is 0; it must be an integer from 1 to"),
        (["perplexity", "-f", "none.txt"], 1, "No such file"),
        (["perplexity", "-f", __file__, "--context", "4"], 2, "--context"),
        (["perplexity", "-f", __file__, "--chunks", "0"], 2, "--chunks"),
        (["bench", "-p", "a lot"], 2, "--n-prompt"),
        (["bench", "-p", "0", "-n", "0"], 2, "nothing to measure"),
        (["bench", "-pg", "1,2,3"], 2, "-pg"),
        (["bench", "-t", "0"], 2, "--threads"),
        (["bench", "-r", "0"], 2, "--repetitions"),
        (["bench", "-o", "sql"], 2, "--output"),
        (["bench", "--device", "abacus"], 1, "abacus"),
        (["inspect", "--device", "abacus"], 1, 'no device "abacus"; known are auto'),
        (["plan", "ember", "--device", "abacus"], 1, 'no device "abacus"; known are auto'),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_makes_no_sense_is_one_line(
    run_akunu: Run, arguments: list[str], code: int, words: str
) -> None:
    line = one_line(run_akunu(*arguments), code)
    assert words in line
    assert "None" not in line


def test_tokenize_shows_ids_and_pieces(run_akunu: Run, ember: akunu.Model) -> None:
    text = 'Hello "there"\n\N{FIRE}'
    ids = ember.tokenizer.encode(text)
    done = run_akunu("tokenize", stdin=text)
    lines = done.stdout.splitlines()
    assert [int(line.split()[0]) for line in lines] == ids
    assert lines[0].endswith('"Hello"') or '"H' in lines[0]
    assert "\\n" in done.stdout
    assert done.stdout.isascii()  # Ember has no token for the emoji, only its bytes
    facts = as_json(run_akunu("tokenize", "-p", text, "--json"))
    assert facts["count"] == len(ids)
    assert [token["id"] for token in facts["tokens"]] == ids
    spelled = b"".join(
        bytes(p) if isinstance(p := token["piece"], list) else p.encode()
        for token in facts["tokens"]
    )
    assert spelled.decode() == text


def test_tokenize_reads_directories_with_and_without_weights(
    run_akunu: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    hf_directory.write_tokenizer(folder, 300)
    expected = akunu.Tokenizer.from_directory(folder).encode("the hat")
    assert as_json(run_akunu("tokenize", str(folder), "-p", "the hat", "--json"))["count"] == len(
        expected
    )
    (folder / "config.json").write_text('{"model_type": "llama"}')
    weights = folder / "model.safetensors"
    hf_directory.write_safetensors(weights, {"a": ("F32", (1,), bytes(4))})
    for path in (folder, weights):
        done = run_akunu("tokenize", str(path), "-p", "the hat", "--json")
        assert [token["id"] for token in as_json(done)["tokens"]] == list(expected)


def test_tokenize_makes_control_tokens_only_when_asked(run_akunu: Run, ember: akunu.Model) -> None:
    (eot,) = [ember.tokenizer.token_id("<|im_end|>")]
    plain = as_json(run_akunu("tokenize", "-p", "<|im_end|>", "--json"))
    parsed = as_json(run_akunu("tokenize", "-p", "<|im_end|>", "--json", "--parse-special"))
    assert [token["id"] for token in parsed["tokens"]] == [eot]
    assert eot not in [token["id"] for token in plain["tokens"]]
    assert plain["count"] > 1


def test_tokenize_of_nothing_is_nothing(run_akunu: Run) -> None:
    assert run_akunu("tokenize").stdout == ""
    assert as_json(run_akunu("tokenize", "--json")) == {"count": 0, "tokens": []}


def test_inspect_says_what_the_gguf_package_says(run_akunu: Run) -> None:
    reader = GGUFReader(EMBER)
    facts = as_json(run_akunu("inspect", "--json"))
    assert facts["file"]["tensors"] == len(reader.tensors)
    assert facts["file"]["parameters"] == sum(int(t.n_elements) for t in reader.tensors)
    by_name = {tensor["name"]: tensor for tensor in facts["tensors"]}
    for tensor in reader.tensors:
        ours = by_name[tensor.name]
        assert ours["format"] == tensor.tensor_type.name
        assert ours["bytes"] == tensor.n_bytes
        assert ours["shape"] == [int(n) for n in reversed(tensor.shape)]
    assert sum(f["bytes"] for f in facts["formats"]) == facts["file"]["tensor_bytes"]
    assert facts["metadata"]["general.name"] == "Ember"
    tokens = facts["metadata"]["tokenizer.ggml.tokens"]
    assert tokens["length"] == facts["tokenizer"]["tokens"] == 4096
    assert tokens["first"][0] == "<|endoftext|>"


def test_inspect_says_what_a_context_takes(run_akunu: Run) -> None:
    runs = [
        as_json(run_akunu("inspect", "--json", "--context", str(n)))["run"] for n in (256, 1024)
    ]
    assert [run["context"] for run in runs] == [256, 1024]
    assert runs[0]["memory_bytes"]["cache"] * 4 == runs[1]["memory_bytes"]["cache"]
    launches = runs[0]["launches"]["single"]
    layers = runs[0]["config"]["n_layers"]
    assert launches["per_layer"] * layers + len(launches["others"]) == launches["total"]
    assert len(launches["layer_0"]) == launches["per_layer"] > 0


def test_inspect_reads_well(run_akunu: Run) -> None:
    done = run_akunu("inspect")
    assert done.returncode == 0
    for words in ("general.name", "Ember", "blk.0.attn_q.weight", "memory at a context of 1024"):
        assert words in done.stdout
    assert "per layer" in done.stdout
    assert max(map(len, done.stdout.splitlines())) < 400


def test_inspect_shows_a_file_that_cannot_run(run_akunu: Run, tmp_path: Path) -> None:
    path = tmp_path / "odd.gguf"
    writer = GGUFWriter(path, "odd")
    writer.add_string("odd.text", "line\nnext\x1b[2J")
    writer.add_float32("odd.number", float("nan"))
    writer.add_array("odd.list", list(range(100)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    facts = as_json(run_akunu("inspect", str(path), "--json"))
    assert facts["metadata"]["odd.list"] == {"length": 100, "first": [0, 1, 2, 3, 4]}
    assert facts["metadata"]["odd.number"] == "nan"
    assert "error" in facts["run"]
    assert "error" in facts["tokenizer"]
    text = run_akunu("inspect", str(path))
    assert text.returncode == 0
    assert "\x1b" not in text.stdout
    assert "line\\nnext" in text.stdout
    assert "not possible" in text.stdout


def test_inspect_shows_all_parts_of_a_split_file(run_akunu: Run, tmp_path: Path) -> None:
    writer = GGUFWriter(tmp_path / "model.gguf", "odd", split_max_tensors=2)
    for number in range(3):
        writer.add_tensor(f"tensor.{number}", np.ones((4, 32), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    parts = sorted(tmp_path.glob("model-*.gguf"))
    assert len(parts) == 2
    facts = as_json(run_akunu("inspect", str(parts[0]), "--json"))
    assert [Path(part) for part in facts["file"]["parts"]] == parts
    assert facts["file"]["bytes"] == sum(part.stat().st_size for part in parts)
    assert [Path(tensor["file"]) for tensor in facts["tensors"]] == [parts[0], parts[0], parts[1]]
    assert re.search(r"parts +2\n", run_akunu("inspect", str(parts[0])).stdout)


def test_doctor_says_what_was_chosen_and_that_it_works(run_akunu: Run) -> None:
    done = run_akunu("doctor", AKUNU_CPU_ISA="generic")
    assert done.returncode == 0, done.stderr
    assert akunu.__version__ in done.stdout
    assert "asked for by AKUNU_CPU_ISA" in done.stdout
    assert "needs AVX2" in done.stdout
    assert "= 19" in done.stdout
    devices = run_akunu("devices", AKUNU_CPU_ISA="generic").stdout.splitlines()
    shown = done.stdout.splitlines()
    assert [line for line in devices if not line.startswith("available")] == [
        line for line in devices if line in shown and not line.startswith("available")
    ]


def test_doctor_says_what_does_not_work(run_akunu: Run) -> None:
    done = run_akunu("doctor", AKUNU_CPU_ISA="abacus")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("akunu: error: this does not work: ")
    assert "abacus" in line
    assert akunu.__version__ in done.stdout


def test_python_m_akunu_is_the_command(run_akunu: Run) -> None:
    command = [Path(sys.executable).parent / "akunu", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert run_akunu("--version").stdout == done.stdout


def complete_in_shell(words: str, cwd: Path) -> list[str]:
    """What bash would offer for the last word of a line."""
    done = subprocess.run(
        [Path(sys.executable).parent / "akunu"],
        env={
            **ENVIRONMENT,
            "_AKUNU_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split(" ")) - 1),
        },
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout.split()


def test_the_shell_completes_commands_options_and_models(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "small.gguf").touch()
    (tmp_path / "models" / "notes.txt").touch()
    assert complete_in_shell("akunu ch", tmp_path) == ["chat"]
    assert "--no-think" in complete_in_shell("akunu chat --no", tmp_path)
    assert complete_in_shell("akunu chat em", tmp_path) == ["ember"]
    assert complete_in_shell("akunu chat mo", tmp_path) == ["models/"]
    assert complete_in_shell("akunu inspect models/", tmp_path) == ["models/small.gguf"]


def test_completion_is_shown_for_a_shell(run_akunu: Run) -> None:
    done = run_akunu("--show-completion", "bash")
    assert done.returncode == 0, done.stderr
    assert "_AKUNU_COMPLETE" in done.stdout


@pytest.mark.parametrize("arguments", [["inspect"], ["--help"], ["doctor"], ["bench", "-p", "8"]])
def test_a_reader_that_stops_early_is_no_traceback(arguments: list[str]) -> None:
    shell = " ".join([*COMMAND, *arguments, "| head -1"])
    done = subprocess.run(
        ["sh", "-c", shell], env=ENVIRONMENT, capture_output=True, text=True, timeout=120
    )
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1


def test_every_command_shows_its_help(run_akunu: Run) -> None:
    commands = ("chat", "complete", "tokenize", "inspect", "bench", "perplexity", "doctor")
    overview = run_akunu().stdout
    for command in commands:
        assert command in overview
        done = run_akunu(command, "--help")
        assert (done.returncode, done.stderr) == (0, "")
        assert f"Usage: akunu {command}" in done.stdout


def test_the_version_needs_no_library(run_akunu: Run) -> None:
    code = (
        "import sys; from akunu.cli.main import main; main(['--version']);"
        "print(sorted({'typer', 'rich', 'numpy', 'jinja2', 'tokenizers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[1] == "[]"


def test_a_locale_without_emoji_is_no_error(run_akunu: Run) -> None:
    ascii_only = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    text = "Say \N{FIRE}"
    for arguments, stdin in ((("complete", "-p", text), ""), (("tokenize",), text)):
        done = run_akunu(*arguments, stdin=stdin, **ascii_only)
        assert done.returncode == 0, done.stderr
    assert os.environ.get("LC_ALL") != "C"


def test_no_line_of_the_help_is_cut(run_akunu: Run) -> None:
    shown = run_akunu("--help", COLUMNS="80", TERM="dumb").stdout
    listed = shown.partition("Commands:")[2]
    assert "quantize" in listed
    assert "..." not in listed
