"""POST /v1/audio/transcriptions and /v1/audio/translations: what is said in audio."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial

import numpy as np
from fastapi import APIRouter, Request
from numpy.typing import NDArray
from starlette.responses import Response

from akunu.errors import AkunuError, ArgumentError, AudioError
from akunu.server.fields.table import Field
from akunu.server.http.errors import ApiError
from akunu.server.http.form_body import Upload, form_of
from akunu.server.openai.audio_answer import AudioAnswer
from akunu.server.openai.audio_fields import (
    LISTS,
    TRANSCRIPTION_FIELDS,
    TRANSLATION_FIELDS,
    audio_request,
)
from akunu.server.routes.described import form_of_fields
from akunu.server.state import state_of
from akunu.speech.audio import load_audio

router = APIRouter(prefix="/audio", tags=["audio"])


@router.post(
    "/transcriptions",
    summary="Speech in audio as text",
    response_model=None,
    openapi_extra=form_of_fields(TRANSCRIPTION_FIELDS, required=["file"]),
)
async def transcriptions(request: Request) -> Response:
    """Answer in the format that the request names, or as a stream of events."""
    return await _answer(request, TRANSCRIPTION_FIELDS, "transcribe")


@router.post(
    "/translations",
    summary="Speech in audio as English text",
    response_model=None,
    openapi_extra=form_of_fields(TRANSLATION_FIELDS, required=["file"]),
)
async def translations(request: Request) -> Response:
    """Answer in the format that the request names."""
    return await _answer(request, TRANSLATION_FIELDS, "translate")


async def _answer(request: Request, table: Mapping[str, Field], task: str) -> Response:
    state = state_of(request)
    async with form_of(request, LISTS) as form:
        asked = audio_request(table, form, task)
        await state.models.check_speech(asked.model)  # before the work
        samples = await _samples(asked.upload, state.settings.max_audio_seconds)
    return AudioAnswer(request, asked, samples)


async def _samples(upload: Upload, max_seconds: float) -> NDArray[np.float32]:
    read = partial(load_audio, upload.file, max_seconds=max_seconds)
    try:
        return await asyncio.get_running_loop().run_in_executor(None, read)
    except (AudioError, ArgumentError):
        raise
    except AkunuError as error:  # a package is missing here, which another format does not need
        raise ApiError(400, str(error), param="file", code="unsupported_audio") from error
