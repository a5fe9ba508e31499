"""all_reduce and all_reduce_add: the words that ranks exchange; all but one rank are arrays here.

How the ranks run together is tests/unit/device_group.cpp and tests/models/test_several_gpus.py.
"""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from harness import On, Target, assert_same_bits, pack_params, plain_step, poisoned, run
from tables import table

from akunu.errors import DeviceError

# core/kernel_params.h
SLOTS, BLOCKS, UNITS, THREADS = 2, 256, 8, 256
WORD = np.dtype([("first", "<f4"), ("count", "<u4"), ("second", "<f4"), ("again", "<u4")])
RANKS = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 8)]
# Numbers of all rows, two to a word: no more words than a block has threads.
SHAPES = [(2, 1), (96, 1), (64, 8)]


class Exchange:
    """The memory in which a rank finds what the others have written."""

    def __init__(self, n_ranks: int) -> None:
        self.n_words = SLOTS * n_ranks * BLOCKS * UNITS * THREADS
        self.bytes = np.zeros(self.n_words * WORD.itemsize + 4 * BLOCKS, np.uint8)
        words = self.bytes[: self.n_words * WORD.itemsize].view(WORD)
        self.words = words.reshape(SLOTS, n_ranks, BLOCKS, UNITS * THREADS)
        self.counters = self.bytes[self.n_words * WORD.itemsize :].view(np.uint32)

    def put(self, count: int, rank: int, numbers: np.ndarray) -> None:
        """What a rank writes in a round; a thread without numbers writes its first word, too."""
        words = self.words[count % SLOTS, rank, 0]
        pairs = numbers.reshape(-1, 2)
        words["first"][: len(pairs)], words["second"][: len(pairs)] = pairs.T
        words["count"][:THREADS] = words["again"][:THREADS] = count


# Eight ranks have a gigabyte of words.
@table(
    {"n, rows": SHAPES, "rank, n_ranks": RANKS},
    adds=[False, True],
    on_change={"n_ranks": (1, 2, 3)},
    meet=1,
)
def test_the_sum_and_what_the_others_are_told(target, rng, rank, n_ranks, n, rows, adds):
    if target.device.startswith("metal"):
        pytest.skip("one GPU of Apple's is all there is")
    name = "all_reduce_add" if adds else "all_reduce"
    parts = rng.standard_normal((n_ranks, rows, n)).astype(np.float32)
    data = rng.standard_normal((rows, n)).astype(np.float32) if adds else poisoned((rows, n))
    expected = parts[0].copy()
    for part in parts[1:]:
        expected = expected + part
    if adds:
        expected = data + expected
    exchanges = [Exchange(n_ranks) for _ in range(n_ranks)]
    count = 7  # rounds before this one: the counters of all ranks are the same
    for each in exchanges:
        each.counters[:] = count - 1
    for other in range(n_ranks):
        if other != rank:
            exchanges[rank].put(count, other, parts[other])
    operands = [parts[rank].copy(), data, *(each.bytes for each in exchanges)]
    run(name, operands, pack_params(name, n, rank, n_ranks), plain_step(rows), On(target, 2))
    assert_same_bits(data, expected)
    n_words = n * rows // 2
    for other, each in enumerate(exchanges):
        if other == rank:
            assert each.counters[0] == count
            continue
        told = each.words[count % SLOTS, rank, 0][:n_words]
        assert (told["count"] == count).all()
        assert (told["again"] == count).all()
        numbers = np.stack([told["first"], told["second"]], 1).reshape(rows, n)
        assert_same_bits(numbers, parts[rank])
        assert not each.words[(count + 1) % SLOTS]["count"].any()


def wait_for_a_lost_rank(target: Target) -> tuple[str, float]:
    """What a GPU says whose other rank never writes, and after how many seconds."""
    exchanges = [Exchange(2) for _ in range(2)]
    operands = [
        np.ones((1, 64), np.float32),
        poisoned((1, 64)),
        *(each.bytes for each in exchanges),
    ]
    begin = time.monotonic()
    try:
        run("all_reduce", operands, pack_params("all_reduce", 64, 0, 2), plain_step(1), On(target))
    except DeviceError as error:
        return str(error), time.monotonic() - begin
    return "", time.monotonic() - begin


@pytest.mark.slow
def test_a_lost_rank_is_an_error_and_no_hang(gpu_target):
    if gpu_target.device != "cuda":
        pytest.skip("other GPUs have no ranks")
    # A process of its own: the context of the GPU is gone afterwards.
    with ProcessPoolExecutor(1, get_context("spawn")) as processes:
        said, seconds = processes.submit(wait_for_a_lost_rank, gpu_target).result()
    assert "GPU" in said
    assert 9 < seconds < 60
