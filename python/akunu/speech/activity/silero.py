"""Silero's voice activity detector by onnxruntime: `vad="silero"` (`pip install 'akunu[vad]'`)."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from akunu.errors import AkunuError
from akunu.speech.mel import SAMPLE_RATE

_CHUNK = 512
_CONTEXT = 64
"""Samples before a chunk that the model sees, too."""
_STATE = (2, 1, 128)


class SileroDetector:
    """The model, loaded; its state belongs to a call, so threads may share a detector."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        """Load the model of a file, or that of an installed silero-vad.

        Raises AkunuError where onnxruntime or the model is missing, or the file is another model.
        """
        file = Path(path) if path is not None else _installed_model()
        try:
            import onnxruntime
        except ImportError:
            raise AkunuError(
                'vad="silero" needs onnxruntime, which is not installed: '
                "pip install 'akunu[vad]' ('.[vad]' in a clone), or use vad=\"energy\""
            ) from None
        if not file.is_file():
            raise AkunuError(f"vad_model: there is no file {file}")
        options = onnxruntime.SessionOptions()
        options.inter_op_num_threads = options.intra_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._session: Any = onnxruntime.InferenceSession(
                os.fspath(file), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime has no public class of errors
            raise AkunuError(f"{file} cannot be read as an ONNX model: {error}") from None
        names = {each.name for each in self._session.get_inputs()}
        if names != {"input", "state", "sr"}:
            raise AkunuError(
                f"{file} is not a model of Silero's voice activity detector of version 5 or later: "
                f"its inputs are {', '.join(sorted(names))}"
            )

    def probabilities(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return how probable speech is in each 512 samples at 16 kHz; the last may be fewer."""
        n_chunks = -(-len(samples) // _CHUNK)
        padded = np.zeros(_CONTEXT + n_chunks * _CHUNK, np.float32)
        padded[_CONTEXT : _CONTEXT + len(samples)] = samples
        state = np.zeros(_STATE, np.float32)
        rate = np.array(SAMPLE_RATE, np.int64)
        found = np.empty(n_chunks, np.float32)
        for index in range(n_chunks):
            first = index * _CHUNK
            seen = padded[None, first : first + _CONTEXT + _CHUNK]
            probability, state = self._session.run(
                None, {"input": seen, "state": state, "sr": rate}
            )
            found[index] = probability[0, 0]
        return found


def _installed_model() -> Path:
    """Return the file inside an installed silero-vad, whose code (and PyTorch) is not imported."""
    spec = importlib.util.find_spec("silero_vad")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        file = Path(folder) / "data" / "silero_vad.onnx"
        if file.is_file():
            return file
    raise AkunuError(
        'vad="silero" needs the detector\'s file: set vad_model to the path of silero_vad.onnx, or '
        'install silero-vad (which requires PyTorch); or use vad="energy"'
    )
