"""faster-whisper in int8: `speech_faster_whisper.py DIRECTORY BATCH THREADS`; speaks `protocol`."""

from __future__ import annotations

import sys
from typing import Any

import faster_whisper
from speech_requests import serve_speech


def main(path: str, batch: int, threads: int) -> None:
    model = faster_whisper.WhisperModel(
        path, device="cpu", compute_type="int8", cpu_threads=threads
    )
    batched = faster_whisper.BatchedInferencePipeline(model)

    def heard(by: Any, file: str, **options: Any) -> str:
        segments, _ = by.transcribe(file, language="en", temperature=0.0, **options)
        return "".join(segment.text for segment in segments)

    serve_speech(
        f"faster-whisper {faster_whisper.__version__}, int8",
        {
            "greedy": lambda file: heard(model, file, beam_size=1, vad_filter=True),
            "beams": lambda file: heard(model, file, beam_size=5, vad_filter=True),
            "batched": lambda file: heard(batched, file, batch_size=batch),
        },
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
