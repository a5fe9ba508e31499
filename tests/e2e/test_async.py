"""Texts that coroutines wait for: the same ones, side by side on a loop, and cancelled in time."""

from __future__ import annotations

import asyncio
import copy
import gc
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from async_support import MESSAGES, PROMPT, run
from cli_support import ENVIRONMENT

import akunu
from akunu import _core

# So hot that the next token is nearly any: such a text goes on until the context is full.
LONG: dict[str, Any] = {"temperature": 50, "seed": 3}


def ended(generation: _core.Generation) -> str:
    """Wait for the end of a generation that nobody reads; it must come soon."""
    for _ in range(200):
        if generation.next(50) is None:
            return generation.finish_reason
    return "it goes on"


def generation_of(stream: akunu.AsyncTextStream) -> _core.Generation:
    assert stream._decoder is not None
    return stream._decoder.generation


# --- the same texts ------------------------------------------------------------------------------


def test_an_awaited_text_is_that_of_the_call_that_blocks(ember: akunu.Model) -> None:
    options: dict[str, Any] = {"max_tokens": 30, "temperature": 0.9, "seed": 5, "stop": "."}
    text = run(ember.generate_async(PROMPT, **options))
    expected = ember.generate(PROMPT, **options)
    assert text == expected
    assert (text.token_ids, text.finish_reason) == (expected.token_ids, expected.finish_reason)
    assert run(ember.chat_async(MESSAGES, max_tokens=20)) == ember.chat(MESSAGES, max_tokens=20)


def test_pieces_come_as_from_a_text_stream(ember: akunu.Model) -> None:
    async def pieces_of(stream: akunu.AsyncTextStream) -> list[str]:
        return [piece async for piece in stream]

    for make in (
        # Long enough that the engine does not come to the end before the loop reads.
        lambda: ember.generate_async(PROMPT, **LONG, max_tokens=200, stream=True),
        lambda: ember.chat_async(MESSAGES, **LONG, max_tokens=200, stream=True),
    ):
        stream = make()
        pieces = run(pieces_of(stream))
        assert len(pieces) > 1
        assert "" not in pieces
        assert stream.completion == "".join(pieces)
        assert stream.completion_tokens == len(stream.completion.token_ids)


def test_awaited_logits_are_those_of_the_call_that_blocks(ember: akunu.Model) -> None:
    tokens = list(range(40))
    assert np.array_equal(run(ember.logits_async(tokens)), ember.logits(tokens))
    assert np.array_equal(run(ember.logits_async(tokens, last=2)), ember.logits(tokens, last=2))
    assert run(ember.logits_async([])).shape == (0, ember.config.vocab_size)


def test_texts_on_one_loop_are_those_alone(ember: akunu.Model) -> None:
    prompts = [[100 + i] * (1 + i % 7) for i in range(64)]

    async def together() -> list[akunu.Completion]:
        return await asyncio.gather(
            *(
                ember.generate_async(prompt, max_tokens=5 + i % 5)
                for i, prompt in enumerate(prompts)
            )
        )

    alone = [ember.generate(prompt, max_tokens=5 + i % 5) for i, prompt in enumerate(prompts)]
    assert run(together()) == alone


def test_awaited_answers_to_one_prompt_are_those_of_the_call_that_blocks(
    ember: akunu.Model,
) -> None:
    options: dict[str, Any] = {"n": 3, "temperature": 9.0, "seed": 11, "max_tokens": 12}
    with akunu.load() as model:
        answers = run(model.generate_async(PROMPT, **options))
        n_prompt = answers[0].prompt_tokens
        assert [each.cached_tokens for each in answers] == [0, n_prompt - 1, n_prompt - 1]
    assert answers == ember.generate(PROMPT, **options)
    assert len(set(answers)) > 1
    assert run(ember.chat_async(MESSAGES, **options)) == ember.chat(MESSAGES, **options)
    with pytest.raises(akunu.ArgumentError, match=r"^n is 0; it must be an integer from 1 up"):
        run(ember.generate_async(PROMPT, n=0))
    with pytest.raises(akunu.ArgumentError, match="n works with one prompt"):
        run(ember.generate_async([PROMPT, PROMPT], n=2))


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_streams_of_answers_begin_together(ember: akunu.Model, order: tuple[int, ...]) -> None:
    options: dict[str, Any] = {"n": 3, "temperature": 9.0, "seed": 12, "max_tokens": 10}

    async def texts_of(model: akunu.Model) -> dict[int, akunu.Completion]:
        streams = model.generate_async(PROMPT, stream=True, **options)
        assert [stream.prompt_tokens for stream in streams] == [0] * 3
        texts = {i: await streams[i].complete() for i in order}
        assert sum(stream.cached_tokens == 0 for stream in streams) == 1
        return texts

    with akunu.load() as model:
        texts = run(texts_of(model))
    assert [texts[i] for i in range(3)] == ember.generate(PROMPT, **options)


def test_an_answer_that_is_closed_or_dropped_changes_no_other(ember: akunu.Model) -> None:
    options: dict[str, Any] = {"n": 4, "temperature": 9.0, "seed": 13, "max_tokens": 10}

    async def look() -> akunu.Completion:
        streams = ember.generate_async(PROMPT, stream=True, **options)
        await streams[0].aclose()
        del streams[1]
        first, one, left = streams
        del streams
        waiting = asyncio.create_task(one.complete())
        await asyncio.sleep(0)
        waiting.cancel()  # as it begins them
        await asyncio.gather(waiting, return_exceptions=True)
        text = await left.complete()
        assert first.completion.finish_reason == "cancelled"
        assert one.completion.finish_reason == "cancelled"
        return text

    assert run(look()) == ember.generate(PROMPT, **options)[3]


@pytest.mark.parametrize("many", [False, True], ids=["one", "several"])
@pytest.mark.parametrize("what", ["choice", "tools"])
def test_the_vocabulary_of_grammars_is_built_beside_the_loop(
    monkeypatch: pytest.MonkeyPatch, many: bool, what: str
) -> None:
    from akunu.grammar import vocabulary

    threads = []
    build = vocabulary.grammar_vocabulary

    def built(*arguments: Any) -> Any:
        threads.append(threading.current_thread())
        return build(*arguments)

    monkeypatch.setattr(vocabulary, "grammar_vocabulary", built)
    form: dict[str, Any] = {"choice": ["red", "green"]}
    if what == "tools":
        function = {"name": "look", "parameters": {"type": "object", "properties": {}}}
        tool = {"type": "function", "function": function}
        form = {"tools": [tool], "tool_choice": "required", "max_tokens": 4}
    with akunu.load() as model:
        run(model.chat_async([MESSAGES] * 2 if many else MESSAGES, **form))
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()


# --- what they cost ------------------------------------------------------------------------------


# In a process of its own: a server of other tests opens and closes files meanwhile.
STREAMS = """
import asyncio, os, threading, akunu

def open_files():
    return len(os.listdir("/dev/fd"))

async def main():
    await model.generate_async("Hello", max_tokens=1)  # what is made once is there
    threads, files = threading.active_count(), open_files()
    streams = [
        model.generate_async([i + 1], temperature=50, seed=3, max_tokens=200, stream=True)
        for i in range(64)
    ]
    for stream in streams:
        await anext(stream)
    print(threading.active_count() - threads, open_files() - files)
    for stream in streams:
        await stream.aclose()
    print(open_files() - files)

model = akunu.load()
asyncio.run(main(), debug=True)
"""


def test_64_streams_take_one_pipe_and_no_thread(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STREAMS],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=ENVIRONMENT,
        timeout=300,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("0 2\n0\n", "", 0)


def test_who_never_waits_for_a_piece_lets_others_have_their_turn(ember: akunu.Model) -> None:
    async def look() -> tuple[int, int]:
        stream = ember.generate_async([5], **LONG, max_tokens=400, stream=True)
        async with stream:
            while generation_of(stream).completion_tokens < 400:
                await asyncio.sleep(0.01)
            turns = 0

            async def count_turns() -> None:
                nonlocal turns
                while True:
                    turns += 1
                    await asyncio.sleep(0)

            counting = asyncio.create_task(count_turns())
            pieces = [piece async for piece in stream]  # all of it is there already
            counting.cancel()
        return len(pieces), turns

    pieces, turns = run(look())
    assert pieces >= 5  # 64 tokens are taken at a time
    assert turns >= pieces - 1


def test_a_long_prompt_is_split_into_tokens_beside_the_loop(ember: akunu.Model) -> None:
    async def look() -> int:
        turns = 0
        asking = asyncio.ensure_future(ember.generate_async("so it goes " * 20_000))
        while not asking.done():
            turns += 1
            await asyncio.sleep(0)
        with pytest.raises(akunu.ContextOverflowError):
            asking.result()
        return turns

    assert run(look()) > 100


# --- who goes first ------------------------------------------------------------------------------


def test_more_texts_than_may_wait_are_refused_by_name() -> None:
    async def look(model: akunu.Model) -> None:
        async with model.generate_async([7] * 900, **LONG, stream=True) as oldest:
            await anext(oldest)  # it has its place, and of the cache three pages of four
            waiting = [asyncio.ensure_future(model.generate_async([8] * 600, max_tokens=1))]
            waiting += [asyncio.ensure_future(model.logits_async([9] * 600, last=1))]
            await asyncio.sleep(0)
            with pytest.raises(akunu.QueueFullError, match="2 requests"):
                await model.generate_async("The", max_tokens=1)
        await asyncio.gather(*waiting)  # the oldest is over, and they have their turn
        assert await model.generate_async("The", max_tokens=1)

    with akunu.load(context=1024, max_waiting=2) as model:
        run(look(model))


def test_the_text_of_a_higher_priority_has_its_turn_first() -> None:
    async def look(model: akunu.Model) -> list[str]:
        done: list[str] = []

        async def ask(name: str, priority: int) -> None:
            await model.generate_async([len(done) + 8] * 600, max_tokens=1, priority=priority)
            done.append(name)

        async with model.generate_async([7] * 900, **LONG, stream=True) as oldest:
            await anext(oldest)  # the others have no room beside it, nor beside each other
            asked = [("usual", 0), ("later", -5), ("first", 3), ("second", 1)]
            asking = [asyncio.ensure_future(ask(*each)) for each in asked]
            await asyncio.sleep(0.05)
        await asyncio.gather(*asking)
        return done

    with akunu.load(context=1024, prefix_cache=False) as model:
        assert run(look(model)) == ["first", "second", "usual", "later"]


# --- ends ----------------------------------------------------------------------------------------


async def close(stream: akunu.AsyncTextStream) -> None:
    await stream.aclose()
    await stream.aclose()
    assert [piece async for piece in stream] == []


async def cancel(stream: akunu.AsyncTextStream) -> None:
    async def read() -> None:
        async for _ in stream:
            pass

    reading = asyncio.create_task(read())
    await asyncio.sleep(0.05)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading


async def fail(stream: akunu.AsyncTextStream) -> None:
    with pytest.raises(ZeroDivisionError):
        async with stream:
            raise ZeroDivisionError


async def time_out(stream: akunu.AsyncTextStream) -> None:
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(stream.complete(), 0.05)


@pytest.mark.parametrize("end", [close, cancel, fail, time_out])
def test_a_stream_that_is_left_is_cancelled(
    ember: akunu.Model, end: Callable[[akunu.AsyncTextStream], Awaitable[None]]
) -> None:
    async def look() -> None:
        stream = ember.generate_async("The", **LONG, stream=True)
        first = await anext(stream)
        await end(stream)
        assert stream.finish_reason == "cancelled"
        assert stream.completion.startswith(first)
        assert ended(generation_of(stream)) == "cancelled"

    run(look())
    assert not ember._wakers._by_loop
    assert ember.generate("Hello", max_tokens=3) == run(ember.generate_async("Hello", max_tokens=3))


def test_a_stream_that_nobody_has_is_cancelled(ember: akunu.Model) -> None:
    async def look() -> None:
        stream = ember.generate_async("The", **LONG, stream=True)
        async for _ in stream:
            break
        generation = generation_of(stream)
        del stream
        gc.collect()
        assert ended(generation) == "cancelled"
        await asyncio.sleep(0)

    run(look())
    assert not ember._wakers._by_loop


def test_another_task_may_close_a_stream(ember: akunu.Model) -> None:
    async def look() -> None:
        # A prompt long enough for the reader to wait for it.
        stream = ember.generate_async([7] * 900, **LONG, stream=True)

        async def read() -> str:
            return "".join([piece async for piece in stream])

        reading = asyncio.create_task(read())
        await asyncio.sleep(0.02)
        await stream.aclose()
        assert stream.completion == await reading
        assert stream.finish_reason == "cancelled"

    run(look())


def test_cancelled_calls_leave_the_model_usable(ember: akunu.Model) -> None:
    async def look() -> None:
        calls: list[Coroutine[Any, Any, object]] = [
            ember.generate_async("The", **LONG),
            ember.logits_async(list(range(1000))),
            ember.chat_async(MESSAGES, **LONG),
        ]
        tasks = [asyncio.ensure_future(call) for call in calls]
        await asyncio.sleep(0.03)
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(result, asyncio.CancelledError) for result in results)

    run(look())
    assert not ember._wakers._by_loop
    assert ember.chat(MESSAGES, max_tokens=20) == run(ember.chat_async(MESSAGES, max_tokens=20))


def test_closing_the_model_ends_every_text_with_an_error() -> None:
    async def look() -> list[BaseException | object]:
        model = akunu.load()
        waiting = [
            asyncio.ensure_future(each)
            for each in (
                model.generate_async("The", **LONG),
                model.generate_async([7] * 900, **LONG, stream=True).complete(),
                model.logits_async(list(range(2000))),
            )
        ]
        await asyncio.sleep(0.02)
        model.close()
        with pytest.raises(akunu.AkunuError, match="closed"):
            model.generate_async("The")
        return await asyncio.gather(*waiting, return_exceptions=True)

    for error in run(look()):
        assert isinstance(error, akunu.AkunuError)


def test_a_stream_that_was_closed_before_it_began_is_empty(ember: akunu.Model) -> None:
    async def look() -> akunu.Completion:
        stream = ember.generate_async("The", stream=True)
        with pytest.raises(akunu.AkunuError, match="not begun"):
            _ = stream.completion
        assert stream.prompt_tokens == stream.completion_tokens == 0
        await close(stream)
        return stream.completion

    completion = run(look())
    assert (completion, completion.finish_reason) == ("", "cancelled")


# --- what is refused -----------------------------------------------------------------------------


def test_nonsense_is_refused_as_by_the_calls_that_block(ember: akunu.Model) -> None:
    with pytest.raises(akunu.ArgumentError, match="top_p is 2"):
        ember.generate_async("The", top_p=2)
    with pytest.raises(akunu.MisuseError, match="did you mean 'max_tokens'"):
        ember.generate_async("The", max_token=2)  # type: ignore[call-overload]
    with pytest.raises(akunu.ArgumentError, match="priority is 'high'"):
        ember.chat_async(MESSAGES, priority="high")  # type: ignore[call-overload]
    for wrong in (3, [1.5], ["x", 3], None):
        with pytest.raises(akunu.ArgumentError, match="prompt"):
            run(ember.generate_async(wrong))  # type: ignore[arg-type]
    with pytest.raises(akunu.ContextOverflowError):
        run(ember.generate_async([1] * (ember.context + 1)))
    with pytest.raises(akunu.ArgumentError, match="tokens"):
        run(ember.logits_async([2**31]))


def test_without_an_event_loop_it_says_so(ember: akunu.Model) -> None:
    call = ember.generate_async("The")
    with pytest.raises(akunu.MisuseError, match=r"asyncio\.run"):
        call.send(None)


def test_two_tasks_cannot_take_pieces_of_one_stream(ember: akunu.Model) -> None:
    async def look() -> None:
        async with ember.generate_async([7] * 900, **LONG, stream=True) as stream:
            waiting = asyncio.ensure_future(anext(stream))
            await asyncio.sleep(0)
            with pytest.raises(akunu.MisuseError, match="another task"):
                await anext(stream)
            assert await waiting

    run(look())


def test_an_async_stream_cannot_be_copied(ember: akunu.Model) -> None:
    stream = ember.generate_async("The", stream=True)
    with pytest.raises(akunu.MisuseError, match="AsyncTextStream cannot be copied"):
        copy.copy(stream)


# --- loops ---------------------------------------------------------------------------------------


def test_loops_in_several_threads_share_a_model(ember: akunu.Model) -> None:
    expected = [ember.generate([i + 1], max_tokens=8) for i in range(4)]
    found: list[akunu.Completion | None] = [None] * 4

    def work(index: int) -> None:
        found[index] = run(ember.generate_async([index + 1], max_tokens=8))

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == expected
    assert not ember._wakers._by_loop


def test_a_stream_outlives_its_loop_and_goes_on_in_another(ember: akunu.Model) -> None:
    stream = ember.generate_async("The", **LONG, max_tokens=200, stream=True)

    async def some() -> str:
        return "".join([await anext(stream) for _ in range(3)])

    first = run(some())  # which closes its loop
    assert run(stream.complete()).startswith(first)
    assert stream.completion == ember.generate("The", **LONG, max_tokens=200)


def test_a_loop_that_is_closed_leaves_nothing_under_way(ember: akunu.Model) -> None:
    stream = ember.generate_async("The", **LONG, stream=True)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(anext(stream))
    loop.close()
    generation = generation_of(stream)
    del stream
    gc.collect()
    assert ended(generation) == "cancelled"
    assert not ember._wakers._by_loop


class LoopWithoutReaders(asyncio.SelectorEventLoop):
    """As that of Windows: it cannot watch file descriptors of others."""

    def add_reader(self, fd: Any, callback: Callable[..., Any], *args: Any) -> None:
        raise NotImplementedError


def waiting_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "akunu waker"]


def test_a_loop_that_cannot_watch_files_takes_one_thread(ember: akunu.Model) -> None:
    async def look() -> list[akunu.Completion]:
        # Long enough that both are under way when the threads are counted.
        streams = [
            ember.generate_async([i + 1], **LONG, max_tokens=200, stream=True) for i in (4, 5)
        ]
        for stream in streams:
            await anext(stream)
        assert len(waiting_threads()) == 1
        return [await stream.complete() for stream in streams]

    loop = LoopWithoutReaders()
    try:
        texts = loop.run_until_complete(look())
    finally:
        loop.close()
    assert texts == [ember.generate([i + 1], **LONG, max_tokens=200) for i in (4, 5)]
    for thread in waiting_threads():
        thread.join(10)
    assert not waiting_threads()


FORK = """
import asyncio, gc, os, sys
import akunu
model = akunu.load(context=256)
async def main():
    stream = model.generate_async("The", temperature=50, seed=3, stream=True)
    first = await anext(stream)
    child = os.fork()
    if child == 0:
        try:
            model.generate("The")
        except akunu.DeviceError as error:
            print("forked" in str(error), flush=True)
        del stream
        gc.collect()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    return first + "".join([piece async for piece in stream])
text = asyncio.run(main(), debug=False)  # which would call fork slow
print(text == model.generate("The", temperature=50, seed=3))
"""


def test_a_child_that_was_forked_takes_nothing_from_its_parent(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "ignore::DeprecationWarning", "-c", FORK],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=ENVIRONMENT,
        timeout=60,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("True\nTrue\n", "", 0)
