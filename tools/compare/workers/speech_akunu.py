"""akunu: `speech_akunu.py MODEL BATCH THREADS`; speaks `protocol`."""

from __future__ import annotations

import sys
from typing import Any

from speech_requests import serve_speech

import akunu
from akunu import _core


def main(path: str, batch: int, threads: int) -> None:
    model = akunu.load_whisper(path, threads=threads)

    def heard(file: str, **options: Any) -> str:
        return model.transcribe(file, language="en", temperature=0.0, **options).text

    serve_speech(
        f"akunu {akunu.__version__}, instruction set level {_core.devices()[0]['level']}",
        {
            "greedy": lambda file: heard(file, beam_size=1),
            "beams": lambda file: heard(file, beam_size=5),
            "batched": lambda file: heard(file, batch=batch, without_timestamps=True),
        },
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
