"""Models with recurrent layers, of every kind: what the cache keeps of a text changes no text."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import dense_golden
import numpy as np
import pytest
from dense_golden import TOKENS, VOCAB
from engine import chunked, finished, start

import akunu
from akunu.errors import SessionFileError
from akunu.storage.disk_cache import bytes_per_token
from lines import each_line

PAGE = 256
# Of each golden model: what layers that attend keep of a position; of Kimi-Linear latents.
ATTENTION = {
    "falcon-h1": 4 * 2 * 2 * 16,
    "granitehybrid": 2 * 2 * 2 * 16,
    "kimi-linear": 64 + 16,
    "mamba2": 0,
    "nemotron-h": 2 * 2 * 2 * 32,
    "qwen35": 2 * 2 * 2 * 32,
}

# Likewise, numbers of a text in its recurrent layers: two states, and inputs of four positions.
STATES = {
    "falcon-h1": (4 * 2 * 6 * 32 * 48, 4 * 4 * (6 * 32 + 2 * 2 * 48)),
    "granitehybrid": (2 * 2 * 6 * 32 * 48, 2 * 4 * (6 * 32 + 2 * 2 * 48)),
    "kimi-linear": (3 * 2 * 6 * 32 * 32, 3 * 4 * 3 * 6 * 32),
    "mamba2": (4 * 2 * 6 * 32 * 48, 4 * 4 * (6 * 32 + 2 * 2 * 48)),
    "nemotron-h": (2 * 2 * 6 * 32 * 48, 2 * 4 * (6 * 32 + 2 * 2 * 48)),
    "qwen35": (2 * 2 * 6 * 32 * 32, 2 * 4 * (2 * 2 * 32 + 6 * 32)),
}


@pytest.fixture(params=ATTENTION)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def folder(family: str, tmp_path: Path) -> Path:
    return dense_golden.write(tmp_path / "model", dense_golden.load(family))


def test_a_prompt_goes_on_from_one_that_ended(folder: Path) -> None:
    with (
        akunu.load(folder, context=768, prefix_cache=False) as cold,
        akunu.load(folder, context=768) as warm,
    ):
        for n in (1, 2, 255, 256, 257, 300):
            shared = TOKENS[:n]
            finished(start(warm, shared, 5))
            for tail in ([4, *TOKENS[40:70]], [5]):
                prompt = [*shared, *tail]
                generation = start(warm, prompt, 12)
                assert finished(generation) == finished(start(cold, prompt, 12))
                # Who goes on first takes the state along.
                assert len(tail) == 1 or generation.cached_tokens >= n - 1


def test_an_identical_prompt_computes_one_row(folder: Path) -> None:
    with akunu.load(folder, context=768) as model:
        first = finished(start(model, TOKENS, 12))
        generation = start(model, TOKENS, 12)
        assert finished(generation) == first
        assert generation.cached_tokens == len(TOKENS) - 1


def test_a_place_without_a_state_is_read_again(folder: Path) -> None:
    with (
        akunu.load(folder, context=768, prefix_cache=False) as cold,
        akunu.load(folder, context=768) as warm,
    ):
        finished(start(warm, TOKENS[:300], 5))
        prompt = [*TOKENS[:150], 7, *TOKENS[20:40]]
        generation = start(warm, prompt, 12)
        assert finished(generation) == finished(start(cold, prompt, 12))
        assert generation.cached_tokens == 0


@each_line("speculation", [1, 4])
def test_refused_drafts_leave_nothing_behind(folder: Path, speculation: int) -> None:
    prompt = (TOKENS[:17] * 15)[:250]
    bias = dict.fromkeys(range(6, VOCAB), -np.inf)
    drafted = held = 0
    with akunu.load(folder, context=1024, threads=2) as model:
        for seed in range(4):
            sampling: dict[str, Any] = {"temperature": 1.5, "seed": seed, "logit_bias": bias}
            expected = finished(start(model, prompt, 60, **sampling))
            generation = start(model, prompt, 60, speculation=speculation, **sampling)
            assert finished(generation) == expected
            drafted += generation.drafted_tokens
            held += generation.held_tokens
    assert 0 < held < drafted


def test_texts_of_a_tree_are_those_of_a_cold_cache(folder: Path) -> None:
    """Prompts share beginnings, go on from one another, and drive one another out."""
    random = np.random.default_rng(7)
    stems = [list(map(int, random.integers(6, VOCAB, 300))) for _ in range(3)]
    last = [stem[:40] for stem in stems]
    taken = 0
    with (
        akunu.load(folder, context=512, prefix_cache=False) as cold,
        akunu.load(folder, context=512) as warm,
    ):
        for _ in range(80):
            text = random.integers(len(stems))
            cut = int(random.choice([1, 40, 255, 256, 257, 300]))
            goes_on = random.random() < 0.6 and len(last[text]) < 400
            stem = last[text] if goes_on else stems[text][:cut]
            prompt = [*stem, *map(int, random.integers(6, VOCAB, random.integers(1, 9)))]
            last[text] = prompt
            generation = start(warm, prompt, 4)
            assert finished(generation) == finished(start(cold, prompt, 4))
            taken += generation.cached_tokens > 0
    assert taken > 10


def test_a_long_prompt_needs_no_more_inputs_and_states(folder: Path, family: str) -> None:
    taken = []
    for n in (2048, 8192):
        prompt = (TOKENS * (n // len(TOKENS) + 1))[: n - 8]
        with akunu.load(folder, context=n, kv_type="f16") as model:
            before = model.memory["cache"]
            assert len(finished(start(model, prompt, 4))) == 4
            assert model.memory["cache"] == before
            taken.append(before)
    assert taken[1] - taken[0] == (8192 - 2048) * ATTENTION[family] * 2


@pytest.mark.parametrize("n_prompt", [4000, pytest.param(32760, marks=pytest.mark.slow)])
def test_memory_of_a_long_prompt_is_what_the_plan_says(
    folder: Path, family: str, n_prompt: int
) -> None:
    """Pages of states for three texts, of three places each; keys and values of all positions."""
    states, inputs = STATES[family]
    with akunu.load(folder, context=32768, kv_type="f16") as model:
        (kind, *_), *others = [
            (group["kind"], group["layers"]) for group in model._native.cache_layout
        ]
        before = model.memory["cache"]
        finished(start(model, (TOKENS * 110)[:n_prompt], 4))
        assert model.memory["cache"] == before
    assert kind == "states"
    assert len(others) == (family != "mamba2")
    assert before == 9 * 4 * (states + inputs) + 32768 * ATTENTION[family] * 2


def test_a_grammar_leaves_the_text_as_it_is_alone(folder: Path) -> None:
    """Masks may come late: then a row runs again."""
    options: dict[str, Any] = {"max_tokens": 40, "grammar": 'root ::= ("a" | "b" | " ")*'}
    with akunu.load(folder, context=512, threads=2) as model:
        prompts = [TOKENS[:n] for n in (3, 40, 100)]
        together = model.generate(prompts, **options)
        for prompt, reply in zip(prompts, together, strict=True):
            assert model.generate(prompt, **options).token_ids == reply.token_ids


def test_sessions_go_on_and_step_back(folder: Path) -> None:
    with akunu.load(folder, context=512) as model:
        session = model.session()
        session.append(TOKENS[:60])
        first = session.generate(max_tokens=20).token_ids
        whole = model.generate([*TOKENS[:60]], max_tokens=20).token_ids
        assert first == whole
        session.rewind(40)
        session.append(TOKENS[100:130])
        again = session.generate(max_tokens=20).token_ids
        assert again == model.generate([*TOKENS[:40], *TOKENS[100:130]], max_tokens=20).token_ids


def test_logits_on_every_device_are_those_of_pieces(folder: Path, device: str) -> None:
    tokens = TOKENS[:40]
    with akunu.load(folder, device=device, context=PAGE, kv_type="f32") as model:
        whole = chunked(model, tokens, [32, 8], "prompt")
        np.testing.assert_array_equal(chunked(model, tokens, [1, 2, 20, 17], "prompt"), whole)
        steps = chunked(model, tokens, [1] * 40, "generated")
        np.testing.assert_array_equal(chunked(model, tokens, [16, 16, 8], "generated"), steps)


@each_line("n", [1, 2, 3, 4, 40, 255, 256, 257, 300])
def test_what_is_restored_has_the_bits_that_are_computed(folder: Path, n: int) -> None:
    tokens = np.array(TOKENS[:n], np.uint32)
    longer = [*TOKENS[:n], *TOKENS[50:70]]
    with akunu.load(folder, context=512) as model:
        entries, saved = model._native.save_positions(tokens)
        expected = model.logits(longer, last=20)
        text = finished(start(model, longer, 10))
        again, same = model._native.save_positions(tokens)
    assert again == entries
    assert set(entries) == {0}
    np.testing.assert_array_equal(same, saved)
    with akunu.load(folder, context=512) as model:
        assert model._native.restore_positions(tokens, entries, saved) == n
        generation = start(model, longer, 10)
        assert finished(generation) == text
        assert generation.cached_tokens == n
    with akunu.load(folder, context=512) as model:
        model._native.restore_positions(tokens, entries, saved)
        np.testing.assert_array_equal(model.logits(longer, last=20), expected)


@each_line("n", [1, 2, 3])
def test_a_short_text_is_saved_without_numbers_of_another_one(
    folder: Path, family: str, n: int
) -> None:
    """Of four positions' inputs and two states a text of few tokens has set some."""
    tokens = np.array(TOKENS[:n], np.uint32)
    layers = {"falcon-h1": 4, "kimi-linear": 3, "mamba2": 4}.get(family, 2)
    states, inputs = STATES[family]
    # What ended leaves its page to the next one, of three texts at most.
    with akunu.load(folder, context=512, prefix_cache=False) as model:
        for first in range(10, 19):
            finished(start(model, TOKENS[first : first + 40], 5))
        _, saved = model._native.save_positions(tokens)
    page = saved[: 4 * (states + inputs)].view(np.float32).reshape(layers, -1)
    of_states = page[:, : states // layers].reshape(layers, 2, -1)
    of_inputs = page[:, states // layers :].reshape(layers, 4, -1)
    assert (of_inputs[:, :n] != 0).any(axis=-1).all()
    assert (of_inputs[:, n:] == 0).all()
    assert (of_states[:, n % 2] != 0).any()
    if n == 1:
        assert (of_states[:, 0] == 0).all()


def test_a_restored_state_is_what_the_engine_uses(folder: Path, family: str) -> None:
    tokens = np.array(TOKENS[:30], np.uint32)
    with akunu.load(folder, context=512, kv_type="f32") as model:
        entries, saved = model._native.save_positions(tokens)
        kinds = [group["kind"] for group in model._native.cache_layout]
        expected = model.logits([*TOKENS[:30], 5], last=1)
    assert kinds[0] == "states"
    with akunu.load(folder, context=512, kv_type="f32") as model:
        wrong = saved.copy()
        states = wrong[: 4 * sum(STATES[family])].view(np.float32)
        states *= 2
        model._native.restore_positions(tokens, entries, wrong)
        generation = start(model, [*TOKENS[:30], 5], 1)
        finished(generation)
        assert generation.cached_tokens == 30
        assert (model.logits([*TOKENS[:30], 5], last=1) != expected).any()


def test_a_session_goes_on_from_its_file(folder: Path, tmp_path: Path) -> None:
    """In a model loaded anew, and there it steps back and forks as if it had stayed."""
    path = tmp_path / "text.session"
    with akunu.load(folder, context=512) as model:
        session = model.session()
        session.append(TOKENS[:280])
        session.generate(max_tokens=30)
        session.save(path)
        tokens = list(session.token_ids)
        expected = session.fork().generate(max_tokens=25).token_ids
        session.rewind(250)
        session.append(TOKENS[:9])
        back = session.generate(max_tokens=10).token_ids
    with akunu.load(folder, context=512) as model:
        session = model.load_session(path)
        assert (session.notes, session.restored_tokens) == ((), len(tokens))
        assert list(session.token_ids) == tokens
        branch = session.fork()
        reply = session.generate(max_tokens=25)
        assert reply.token_ids == expected
        assert reply.cached_tokens >= len(tokens) - 1
        assert branch.generate(max_tokens=25).token_ids == expected
        session.rewind(250)
        session.append(TOKENS[:9])
        assert session.generate(max_tokens=10).token_ids == back


def test_files_of_others_and_damaged_ones_are_refused(
    folder: Path, family: str, tmp_path: Path
) -> None:
    path, cut = tmp_path / "text.session", tmp_path / "cut.session"
    with akunu.load(folder, context=512) as model:
        session = model.session()
        session.append(TOKENS[:30])
        session.save(path)
        raw = path.read_bytes()
        flipped = bytearray(raw)
        flipped[-100] ^= 1
        for damaged in (raw[:-1], raw[: len(raw) // 2], bytes(flipped)):
            cut.write_bytes(damaged)
            with pytest.raises(SessionFileError):
                model.load_session(cut)
    other = next(each for each in ATTENTION if each != family)
    with (
        akunu.load(
            dense_golden.write(tmp_path / "other", dense_golden.load(other)), context=512
        ) as model,
        pytest.raises(SessionFileError, match="another model"),
    ):
        model.load_session(path)
    if family == "mamba2":  # which has none of either type
        return
    with (
        akunu.load(folder, context=512, kv_type="f32") as model,
        pytest.raises(SessionFileError, match="keys and values in f16"),
    ):
        model.load_session(path)


def kept(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*.run"))


@each_line("n", [17, 255, 256, 257, 300])
def test_a_later_model_goes_on_behind_what_an_earlier_one_read(
    folder: Path, tmp_path: Path, n: int
) -> None:
    """Of a prompt of n tokens: behind it, or a row before its end; and behind the reply."""
    disk = tmp_path / "kept"
    longer, other = [*TOKENS[:n], *TOKENS[50:70]], [*TOKENS[: n - 2], *TOKENS[50:70]]
    with akunu.load(folder, context=512, prefix_cache=False) as model:
        first, expected, without = (
            finished(start(model, prompt, 10)) for prompt in (TOKENS[:n], longer, other)
        )
        logits = model.logits(longer, last=20)
    with akunu.load(folder, context=512, cache_dir=disk) as model:
        assert not model.notes
        assert finished(start(model, TOKENS[:n], 10)) == first
        assert model._native.wait_until_idle(timeout_ms=60_000)
    for prompt, reply, n_taken in (
        (longer, expected, n),
        (TOKENS[:n], first, n - 1),
        (other, without, 0),
    ):
        with akunu.load(folder, context=512, cache_dir=disk) as model:
            generation = start(model, prompt, 10)
            assert finished(generation) == reply
            assert generation.cached_tokens == n_taken
    turn = [*TOKENS[:n], *first, 9, 9]
    with akunu.load(folder, context=512, cache_dir=disk) as model:
        generation = start(model, turn, 1)
        finished(generation)
        assert generation.cached_tokens == n + len(first)
    with akunu.load(folder, context=512, cache_dir=disk) as model:
        np.testing.assert_array_equal(model.logits(longer, last=20), logits)
        assert model.occupancy.disk is not None
        assert model.occupancy.disk.damaged == 0


def test_what_a_text_takes_on_the_disk_is_what_a_plan_says(
    folder: Path, family: str, tmp_path: Path
) -> None:
    n = 300
    with akunu.load(folder, context=512, kv_type="f16", cache_dir=tmp_path / "kept") as model:
        native = model._open()
        token = bytes_per_token(native)
        states = native.state_bytes
        finished(start(model, TOKENS[:n], 1))
    assert (token, states) == (2 * ATTENTION[family], 4 * sum(STATES[family]))
    pieces = [72 + 4 * 257 + PAGE * token, 72 + 4 * (n - PAGE) + (n - PAGE) * token]
    sizes = [file.stat().st_size for file in kept(tmp_path / "kept")]
    assert sorted(sizes) == sorted([*pieces, 72 + 4 * (n - PAGE) + states])


def test_damaged_states_on_the_disk_are_a_miss(folder: Path, tmp_path: Path) -> None:
    disk = tmp_path / "kept"
    with akunu.load(folder, context=512, cache_dir=disk) as model:
        expected = finished(start(model, TOKENS[:300], 10))
    states = [file for file in kept(disk) if file.read_bytes()[20] == 1]
    assert states
    for file in states:
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        file.write_bytes(data)
    with akunu.load(folder, context=512, cache_dir=disk) as model:
        generation = start(model, TOKENS[:300], 10)
        assert (finished(generation), generation.cached_tokens) == (expected, 0)
        assert model.occupancy.disk is not None
        assert model.occupancy.disk.damaged == 1
        assert "damaged" in model.occupancy.disk.problem


def test_where_states_are_damaged_a_text_goes_on_behind_earlier_ones(
    folder: Path, tmp_path: Path
) -> None:
    disk = tmp_path / "kept"
    with akunu.load(folder, context=512, cache_dir=disk) as model:
        finished(start(model, TOKENS[:270], 1))
    earlier = set(kept(disk))
    with akunu.load(folder, context=512, cache_dir=disk) as model:
        expected = finished(start(model, TOKENS[:330], 10))
    states = [file for file in kept(disk) if file.read_bytes()[20] == 1 and file not in earlier]
    assert states
    for file in states:
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        file.write_bytes(data)
    with akunu.load(folder, context=512, cache_dir=disk) as model:
        generation = start(model, TOKENS[:330], 10)
        assert (finished(generation), generation.cached_tokens) == (expected, 270)
        assert model.occupancy.disk is not None
        assert model.occupancy.disk.damaged == 1


def test_a_disk_that_takes_nothing_changes_no_text(folder: Path, tmp_path: Path) -> None:
    with akunu.load(folder, context=512, prefix_cache=False) as model:
        expected = finished(start(model, TOKENS[:300], 10))
    turn = [*TOKENS[:300], *expected, 9]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2048, hard))  # of a file: too few for one's states
    try:
        with akunu.load(folder, context=512, cache_dir=tmp_path / "kept") as model:
            assert finished(start(model, TOKENS[:300], 10)) == expected
            assert model._native.wait_until_idle(timeout_ms=60_000)
            generation = start(model, turn, 1)
            finished(generation)
            assert generation.cached_tokens == 310
            assert model.occupancy.disk is not None
            assert "cannot be written" in model.occupancy.disk.problem
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert all(file.read_bytes()[20] == 0 for file in kept(tmp_path / "kept"))
    assert not list(tmp_path.glob("kept/*/*.unfinished"))
    with akunu.load(folder, context=512, cache_dir=tmp_path / "kept") as model:
        generation = start(model, TOKENS[:300], 10)
        assert (finished(generation), generation.cached_tokens) == (expected, 0)


def test_states_on_the_disk_count_in_the_limit(folder: Path, tmp_path: Path) -> None:
    disk = tmp_path / "kept"
    with akunu.load(folder, context=512, cache_dir=disk) as model:
        finished(start(model, TOKENS[:300], 1))
    most = 2 * sum(file.stat().st_size for file in kept(disk)) + 2**17
    with akunu.load(folder, context=512, cache_dir=disk, cache_size=most) as model:
        for i in range(5):
            finished(start(model, [i + 6, *TOKENS[:299]], 1))
    assert sum(file.stat().st_size for file in kept(disk)) <= most
    with akunu.load(folder, context=512, cache_dir=disk, cache_size=most) as model:
        generation = start(model, [10, *TOKENS[:299], 7], 1)
        finished(generation)
        assert generation.cached_tokens >= 299
        assert model.occupancy.disk is not None
        assert model.occupancy.disk.damaged == 0


def test_a_folder_beside_other_texts_changes_none(folder: Path, tmp_path: Path) -> None:
    """Texts of a tree in models that end again and again, side by side; some of them drafted."""
    random = np.random.default_rng(11)
    stems = [list(map(int, random.integers(6, VOCAB, 300))) for _ in range(2)]
    taken = 0
    with akunu.load(folder, context=512, prefix_cache=False) as cold:
        last = [stem[:40] for stem in stems]
        for _ in range(4):
            with akunu.load(folder, context=512, cache_dir=tmp_path / "kept") as warm:
                for _ in range(6):
                    prompts = []
                    for text, stem in enumerate(stems):
                        goes_on = random.random() < 0.6 and len(last[text]) < 400
                        begin = (
                            last[text] if goes_on else stem[: int(random.choice([40, 256, 300]))]
                        )
                        last[text] = [*begin, *map(int, random.integers(6, VOCAB, 5))]
                        prompts.append(last[text])
                    generations = [start(warm, prompt, 6, speculation=2) for prompt in prompts]
                    for prompt, generation in zip(prompts, generations, strict=True):
                        assert finished(generation) == finished(start(cold, prompt, 6))
                assert warm.occupancy.disk is not None
                taken += warm.occupancy.disk.restored > 0
    assert taken > 1
