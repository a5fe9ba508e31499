"""The files that documents speak of as their readers' own: small ones, made here.

Each function makes in a folder what the blocks of one page want to find there.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
from cli_support import EMBER
from ember_adapter import write_adapter
from ember_in_halves import rewritten

sys.path.append(str(Path(__file__).parents[1] / "models"))


def adapters(folder: Path) -> None:
    """A base, and an adapter of each kind."""
    from adapter_files import Adapter, write_peft
    from random_models import KINDS

    shutil.copy(EMBER, folder / "llama-3.2-1b.gguf")
    write_adapter(folder / "poet.gguf")
    rng = np.random.default_rng(2)
    halves = [rng.standard_normal(shape).astype(np.float32) for shape in ((2, 256), (128, 2))]
    matrices = {f"model.layers.{n}.self_attn.v_proj": (halves[0], halves[1]) for n in range(12)}
    write_peft(folder / "adapters/terse", Adapter(KINDS["qwen3"], 4.0, matrices))


def encoder(folder: Path) -> None:
    """An encoder, as a file."""
    import encoder_models as em

    spec = em.EncoderSpec()
    em.write_gguf(folder / "all-MiniLM-L6-v2.gguf", spec, em.random_tensors(spec))


def ranker(folder: Path) -> None:
    """A cross-encoder."""
    import encoder_models as em

    spec = em.EncoderSpec()
    rng = np.random.default_rng(1)
    head = {"cls.output.weight": rng.standard_normal((1, spec.dim)).astype(np.float32)}
    path = folder / "bge-reranker-v2-m3.gguf"
    tensors = em.random_tensors(spec)
    em.write_gguf(path, spec, tensors, pooling=gguf.PoolingType.RANK, more=head)


def speech(folder: Path) -> None:
    """A Whisper model, and audio in which it hears something."""
    import brief_speech
    import soundfile

    brief_speech.write(folder / "whisper-tiny.en")
    brief_speech.write(folder / "models/whisper-small")
    noise = np.random.default_rng(7).standard_normal(16_000 * 4).astype(np.float32) * 0.1
    noise *= np.arange(noise.size) // 8000 % 3 > 0  # steady noise is no speech
    soundfile.write(folder / "interview.wav", noise, 16_000)
    soundfile.write(folder / "talk.mp3", noise, 16_000)
    soundfile.write(folder / "call.wav", np.stack([noise, noise[::-1]], axis=1), 16_000)


def unquantised(folder: Path) -> None:
    """A model in F16, a directory in BF16, and a text."""
    import hf_directory
    from random_models import KINDS, random_weights

    rewritten(folder / "model-f16.gguf")
    (folder / "text.txt").write_text(", ".join(map(str, range(1, 600))))
    spec = KINDS["llama-32"]
    home = folder / "models/SmolLM2-135M-Instruct"
    home.parent.mkdir()
    hf_directory.write(home, spec, random_weights(spec, seed=1), dtype="BF16")


FILES: dict[str, tuple[Callable[[Path], None], ...]] = {
    "docs/embeddings-speech-images.md": (encoder, ranker, speech),
    "docs/migrating/faster-whisper.md": (speech,),
    "docs/migrating/sentence-transformers.md": (encoder,),
    "docs/models.md": (adapters, unquantised),
}


def make_files(page: str, folder: Path) -> None:
    """Make the files that a page's blocks use."""
    for make in FILES.get(page, ()):
        make(folder)
