"""Greedy replies from the PyTorch model, many prompts at a time."""

from pathlib import Path

import torch

from . import checkpoint, simulate
from .chat_template import prompt
from .dialogue import Dialogue
from .model import Cache, Ember, Shape
from .tokenizer import END_OF_TEXT, TURN_END, Tokenizer


def load_model(folder: Path, stored: str = "exact") -> Ember:
    state = checkpoint.load(folder)
    model = Ember(Shape(**state["shape"]))
    model.load_state_dict(state["model"])
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if stored != "exact":
        rounding = {"q8_0": simulate.q8_0, "q4_0": simulate.q4_0}[stored]
        with torch.no_grad():
            for weight in [model.embedding, *model.matrices()]:
                weight.copy_(rounding(weight))
    return model.to(device).eval()


@torch.inference_mode()
def _batch(model: Ember, prompts: list[list[int]], max_tokens: int) -> list[list[int]]:
    device, longest = model.embedding.device, max(map(len, prompts))
    tokens = torch.full((len(prompts), longest), END_OF_TEXT, device=device)
    for row, ids in enumerate(prompts):
        tokens[row, longest - len(ids) :] = torch.tensor(ids, device=device)
    first = torch.tensor([longest - len(ids) for ids in prompts], device=device)
    cache = Cache(model.shape, len(prompts), longest + max_tokens, device, torch.float32)
    replies, running = [], torch.ones(len(prompts), dtype=torch.bool, device=device)
    for _ in range(max_tokens):
        picked = model.step(tokens, first, cache).argmax(-1)
        picked = torch.where(running, picked, TURN_END)
        replies.append(picked)
        running &= picked != TURN_END
        if not running.any():
            break
        tokens = picked[:, None]
    rows = torch.stack(replies, 1).tolist()
    return [row[: row.index(TURN_END)] if TURN_END in row else row for row in rows]


def replies(
    model: Ember,
    bpe: Tokenizer,
    dialogues: list[Dialogue],
    *,
    max_tokens: int = 120,
    batch: int = 256,
) -> list[str]:
    """The model's next message in each dialogue, in their order."""
    prompts = [bpe.encode(prompt(d.messages, d.tools)).ids for d in dialogues]
    order = sorted(range(len(prompts)), key=lambda at: len(prompts[at]))
    made = [""] * len(prompts)
    for at in range(0, len(order), batch):
        rows = order[at : at + batch]
        for row, ids in zip(
            rows, _batch(model, [prompts[r] for r in rows], max_tokens), strict=True
        ):
            made[row] = bpe.decode(ids, skip_special_tokens=False)
    return made
