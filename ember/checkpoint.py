"""Checkpoints in pieces of at most 15 MiB: model, optimizers, random state, step."""

import io
from pathlib import Path
from typing import Any

import torch

PIECE = 15 * 2**20


def _pieces(folder: Path) -> list[Path]:
    return sorted(folder.glob("ember.ckpt.[0-9][0-9]"))


def save(folder: Path, state: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    torch.save(state, buffer)
    data = buffer.getbuffer()
    for piece in _pieces(folder):
        piece.unlink()
    for at in range(0, len(data), PIECE):
        (folder / f"ember.ckpt.{at // PIECE:02d}").write_bytes(data[at : at + PIECE])


def load(folder: Path) -> dict[str, Any]:
    pieces = _pieces(folder)
    if not pieces:
        raise FileNotFoundError(f"{folder}: no ember.ckpt.00")
    data = b"".join(piece.read_bytes() for piece in pieces)
    return torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)


def halved(state: Any) -> Any:
    """An optimizer's state with its moments in bfloat16, to keep a checkpoint small."""
    if isinstance(state, torch.Tensor):
        return state.bfloat16() if state.numel() > 1 and state.is_floating_point() else state
    if isinstance(state, dict):
        return {key: halved(value) for key, value in state.items()}
    if isinstance(state, list):
        return [halved(value) for value in state]
    return state
