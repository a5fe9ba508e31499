"""Every error that akunu raises derives from `AkunuError`."""

from __future__ import annotations


class AkunuError(Exception):
    """Base of all errors of akunu."""


class ArgumentError(AkunuError, ValueError):
    """An argument makes no sense; the message names it, its value and what is allowed."""

    refused: tuple[str, object, str] | None = None
    """The name of an option, its value and the allowed values, to word the message differently."""


class MisuseError(AkunuError, TypeError):
    """A call that cannot work whatever the values: an unknown option, a copy of a model."""


class ModelFormatError(AkunuError):
    """A file contradicts its own format; the message says what is wrong and where in the file."""


class UnsupportedModelError(AkunuError):
    """A sound file asks for an architecture, number format or kernel that akunu does not have."""


class DeviceError(AkunuError):
    """The device refused or failed while it ran a command."""


class OutOfMemoryError(AkunuError, MemoryError):
    """A model does not fit; the message says how much is needed, for what, and what there is."""


class ContextOverflowError(AkunuError):
    """A prompt does not fit into the context; nothing was computed."""


class QueueFullError(AkunuError):
    """As many requests wait as may; this one was not begun, and may be tried again later."""


class DeadEndError(AkunuError):
    """A text cannot continue in its grammar; the message says why.

    None of the tokens that may follow can be chosen, or which ones may is more than llguidance
    computes. What came before is well, and not complete.
    """


class GrammarLimitError(DeadEndError):
    """What a text's grammar allows next takes more work to find out than one text may have.

    Large repetitions are dear, above all in each other (`(a{1000}){1000}`), and thousands of
    alternatives: make them smaller. Other texts continue.
    """


class AudioError(AkunuError, ValueError):
    """Audio that cannot be read: cut off, of an unknown format, empty, or with NaN in it.

    The message says which file, what is wrong with it, and what to do.
    """


class AudioFileError(AudioError, OSError):
    """A file of audio that is not there, or cannot be opened; the message names it.

    `errno` says which of the two.
    """


class SessionFileError(AkunuError, ValueError):
    """A saved session that cannot be used here.

    It is cut off or damaged, or of another model, `kv_type` or version of the form; the message
    names the file, and says what to do.
    """


class DownloadError(AkunuError):
    """A model could not be fetched; the message says why, and what to do. What came is kept."""
