"""Dialogues become blocks of tokens; worker processes make them while the GPU trains.

A block is 32,768 tokens of whole dialogues, one after the other, and the places where they start.
A token travels in 16 bits: 12 for its id, one that says whether it is learned.
"""

import multiprocessing
import os
import queue
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from . import mixture, tokenizer
from .chat_template import pieces
from .dialogue import Draw

CONTEXT = 1024
BLOCK = 32_768
MOST_DIALOGUES = 736  # in one block; about 620 fit
LEARNED = 1 << 12


def encoded(draw: Draw, bpe: tokenizer.Tokenizer, n_dialogues: int) -> Iterator[np.ndarray]:
    """Each dialogue as its packed tokens; those longer than the context are left out."""
    cut: list[list[tuple[str, bool]]] = []
    for _ in range(n_dialogues):
        made = mixture.dialogue(draw)
        merged: list[tuple[str, bool]] = []
        for text, learned in pieces(made.messages, made.tools):
            if merged and merged[-1][1] == learned:
                merged[-1] = (merged[-1][0] + text, learned)
            else:
                merged.append((text, learned))
        cut.append(merged)
    encodings = iter(bpe.encode_batch_fast([text for merged in cut for text, _ in merged]))
    for merged in cut:
        tokens = np.concatenate(
            [
                np.array(next(encodings).ids, np.uint16) | (LEARNED if learned else 0)
                for _, learned in merged
            ]
        ).astype(np.uint16)
        if len(tokens) <= CONTEXT:
            yield tokens


def blocks(draw: Draw, bpe: tokenizer.Tokenizer) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Endless pairs: tokens [BLOCK], and boundaries [MOST_DIALOGUES + 1] that end in BLOCK."""
    parts: list[np.ndarray] = []
    ends = [0]
    while True:
        for tokens in encoded(draw, bpe, 512):
            if ends[-1] + len(tokens) > BLOCK or len(ends) > MOST_DIALOGUES - 40:
                padding = np.zeros(BLOCK - ends[-1], np.uint16)
                while ends[-1] < BLOCK:
                    ends.append(min(BLOCK, ends[-1] + CONTEXT))
                boundaries = np.full(MOST_DIALOGUES + 1, BLOCK, np.int32)
                boundaries[: len(ends)] = ends
                yield np.concatenate([*parts, padding]), boundaries
                parts, ends = [], [0]
            parts.append(tokens)
            ends.append(ends[-1] + len(tokens))


def _work(path: str, seed: str, made: multiprocessing.Queue) -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    torch.set_num_threads(1)
    group = []
    for block in blocks(Draw(seed), tokenizer.load(Path(path))):
        group.append(block)
        if len(group) == 8:
            made.put((np.stack([b[0] for b in group]), np.stack([b[1] for b in group])))
            group = []


class Pool:
    """Blocks on the GPU. Fresh ones go first; old ones serve again when workers fall behind."""

    def __init__(
        self, tokenizer_path: Path, *, seed: str, n_workers: int, n_blocks: int, device: str
    ) -> None:
        context = multiprocessing.get_context("spawn")
        self._made: multiprocessing.Queue = context.Queue(maxsize=4 * n_workers)
        self._workers = [
            context.Process(
                target=_work, args=(str(tokenizer_path), f"{seed}/{at}", self._made), daemon=True
            )
            for at in range(n_workers)
        ]
        for worker in self._workers:
            worker.start()
        self._tokens = torch.zeros(n_blocks, BLOCK, dtype=torch.int16, device=device)
        self._boundaries = torch.zeros(
            n_blocks, MOST_DIALOGUES + 1, dtype=torch.int32, device=device
        )
        self._fresh: list[int] = []
        self._next = 0
        self.n_made = 0
        self._rng = np.random.default_rng(zlib.crc32(seed.encode()))

    def _receive(self, wait: bool) -> bool:
        try:
            tokens, boundaries = self._made.get(timeout=120) if wait else self._made.get_nowait()
        except queue.Empty:
            return False
        at = self._next
        n = min(len(tokens), len(self._tokens) - at)
        self._tokens[at : at + n] = torch.from_numpy(tokens[:n].view(np.int16))
        self._boundaries[at : at + n] = torch.from_numpy(boundaries[:n])
        replaced = set(range(at, at + n))
        self._fresh = [b for b in self._fresh if b not in replaced] + sorted(replaced)
        self._next = (at + n) % len(self._tokens)
        self.n_made += n
        return True

    def batch(self, n_blocks: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """tokens [n * BLOCK], targets (-100 where nothing is learned), boundaries."""
        for _ in range(4):
            if len(self._fresh) > 4096 or not self._receive(wait=False):
                break
        while self.n_made < n_blocks:
            if not self._receive(wait=True):
                raise RuntimeError("the data workers made nothing for two minutes")
        n_fresh = min(n_blocks, len(self._fresh))
        chosen, self._fresh = self._fresh[:n_fresh], self._fresh[n_fresh:]
        if n_fresh < n_blocks:
            n_filled = min(self.n_made, len(self._tokens))
            chosen += self._rng.integers(n_filled, size=n_blocks - n_fresh).tolist()
        packed = self._tokens[chosen].long()
        offsets = torch.arange(n_blocks, device=packed.device, dtype=torch.int32)[:, None] * BLOCK
        boundaries = (self._boundaries[chosen][:, 1:] + offsets).flatten()
        tokens, learned = (packed & (LEARNED - 1)).flatten(), (packed & LEARNED).flatten() > 0
        targets = torch.full_like(tokens, -100)
        targets[:-1] = torch.where(learned[1:], tokens[1:], -100)
        return tokens, targets, torch.nn.functional.pad(boundaries, (1, 0))

    def close(self) -> None:
        for worker in self._workers:
            worker.kill()
