"""`akunu chat --image`, and /image in a chat: images beside a question."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[1] / "models"))

from cli_support import ask
from image_models import drawn, encoded, question, write

import akunu

LOAD = ("--device", "cpu", "--context", "512", "--max-tokens", "40")
# So that the text shows what the images are: the likeliest token is the same for all of them.
DRAWN = ("--temperature", "20", "--seed", "5")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("images")
    for seed in (1, 2):
        (folder / f"{seed}.png").write_bytes(encoded(drawn(seed)))
    write(folder / "model")
    return folder


def test_a_question_about_images_has_python_s_answer(run_akunu: Any, folder: Path) -> None:
    images = ("--image", str(folder / "1.png"), "--image", str(folder / "2.png"))
    done = run_akunu("chat", str(folder / "model"), "What", "is this?", *images, *LOAD, *DRAWN)
    assert done.returncode == 0, done.stderr
    message = question(drawn(1), drawn(2))
    message["content"] = [*message["content"][::2], message["content"][1]]
    with akunu.load(folder / "model", device="cpu", context=512) as model:
        drawn_options = akunu.SamplingOptions(max_tokens=40, temperature=20, seed=5)
        expected = model.chat([message], drawn_options)
        message["content"][0]["image"] = drawn(3)
        other = model.chat([message], drawn_options)
    assert done.stdout.strip() == expected.strip()
    assert expected != other
    piped = run_akunu("run", str(folder / "model"), *images[:2], *LOAD, stdin="What is this?")
    assert piped.returncode == 0, piped.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (("What?", "--image", "nowhere.png"), 1, "cannot be read"),
        (("What?", "--image", "1.png", "--continue"), 2, "--image and --continue"),
    ],
)
def test_what_makes_no_sense_is_refused(
    run_akunu: Any, folder: Path, arguments: tuple[str, ...], code: int, why: str
) -> None:
    done = run_akunu("chat", str(folder / "model"), *arguments, *LOAD)
    assert done.returncode == code
    assert why in done.stderr
    assert not done.stdout


def test_a_model_that_reads_none_says_so(run_akunu: Any, folder: Path) -> None:
    done = run_akunu("chat", "ember", "What is this?", "--image", str(folder / "1.png"))
    assert done.returncode == 1
    assert "does not read images" in done.stderr
    assert not done.stdout


def test_a_chat_has_images_and_the_replies_of_python(
    terminal: Any, folder: Path, tmp_path: Path
) -> None:
    drawn_options = akunu.SamplingOptions(max_tokens=20, temperature=20, seed=5)
    first, *others = [question(drawn(1)), "And now?", question(drawn(2), text="This?")]
    with akunu.load(folder / "model", device="cpu", context=512) as model:
        messages = [first]
        expected = [model.chat(messages, drawn_options)]
        for each in others:
            asked = {"role": "user", "content": each} if isinstance(each, str) else each
            messages += [{"role": "assistant", "content": str(expected[-1])}, asked]
            expected.append(model.chat(messages, drawn_options))
    options = ("--device", "cpu", "--context", "512", "--max-tokens", "20", *DRAWN)
    talk = terminal("chat", str(folder / "model"), *options, "--image", str(folder / "1.png"))
    talk.wait_for("> ")
    assert "not an image in a supported format" in ask(
        talk, f"/image {folder / 'model' / 'config.json'}"
    )
    assert "the next question has 1 image" in ask(talk, "/image")
    assert "/continue" not in ask(talk, "What is this?").split("akunu:", 1)[-1]
    assert "the next question has no image" in ask(talk, "/image")
    assert "a reply in a conversation with images cannot be continued" in ask(talk, "/continue")
    ask(talk, "And now?")
    assert "the next question has 1 image" in ask(talk, f"/image {folder / '1.png'}")
    assert "the next question has no image" in ask(talk, "/image -")
    ask(talk, f"/image {folder / '2.png'}")
    ask(talk, "This?")
    ask(talk, "/retry")
    assert "does not read images, and this conversation has some" in ask(talk, "/model ember")
    assert "saved 3 turns" in (said := ask(talk, f"/save {tmp_path / 'talk.json'}"))
    assert "without its images" in said
    saved = json.loads((tmp_path / "talk.json").read_text())["messages"]
    assert [each["content"] for each in saved[1::2]] == expected
    assert [each["content"] for each in saved[::2]] == ["What is this?", "And now?", "This?"]


def test_a_chat_whose_images_do_not_fit_goes_on_after_reset(terminal: Any, folder: Path) -> None:
    options = ("--device", "cpu", "--context", "64", "--max-tokens", "4")
    talk = terminal("chat", str(folder / "model"), *options, "--image", str(folder / "1.png"))
    talk.wait_for("> ")
    for _ in range(4):
        ask(talk, f"/image {folder / '2.png'}")
    said = ask(talk, "What?")
    assert "5 images of at least 16 tokens each, the context holds 64" in said
    assert "/reset clears the conversation" in said
    ask(talk, "/reset")
    assert "the next question has no image" in ask(talk, "/image")
    assert "context holds" not in ask(talk, "What?")


def test_a_chat_with_a_model_that_reads_none_says_so(chat: Any, folder: Path) -> None:
    assert "model does not read images" in ask(chat, f"/image {folder / '1.png'}")
    assert "[FILE | -]" in ask(chat, "/help image")


def test_a_file_may_begin_with_the_sign_of_a_folder(chat: Any) -> None:
    assert "No such file" in ask(chat, "/load ~backup.json")
    assert "there is no command" in ask(chat, "/nothing")  # it goes on


def test_images_of_the_next_question_are_not_those_of_the_conversation(
    terminal: Any, folder: Path
) -> None:
    talk = terminal("chat", str(folder / "model"), "--device", "cpu", "--context", "64")
    talk.wait_for("> ")
    ask(talk, f"/image {folder / '1.png'}")
    assert "the next question has some; /image - removes them" in ask(talk, "/model ember")
