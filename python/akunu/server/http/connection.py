"""One connection of a client: time limits for what only the client can continue with, errors in
JSON.

uvicorn's protocol answers malformed requests as plain text, and waits for ever for a client that
sends its headers a byte at a time, or that does not read. A thousand such clients would hold the
server's file descriptors.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from akunu.server.http.errors import ApiError
from akunu.server.http.json_body import json_bytes
from akunu.server.settings import ServerSettings

_LINGER_SECONDS: Final = 2.0  # closed at once, a client that still sends would not see the answer
_FIRST_PROBE_SECONDS: Final = 0.1  # quick answers come without one
_PROBE_SECONDS: Final = 0.5
_REFUSAL_SECONDS: Final = 0.05  # in which a network brings the refusal of a client that is gone
_MOST_PROBES: Final = 8  # parsers have limits; the first one tells of a client that is gone


class Connection(H11Protocol):
    """A connection whose client must continue within the seconds of the settings."""

    def __init__(self, settings: ServerSettings, *given: Any, **named: Any) -> None:
        """`given`, `named`: what uvicorn makes a connection with."""
        super().__init__(*given, **named)
        self._settings = settings
        self._sending: asyncio.TimerHandle | None = None
        """Runs while a client owes the rest of its headers, or of a body that no one reads."""
        self._reading: asyncio.TimerHandle | None = None
        """Runs while a client does not take what is there for it."""
        self._probing: asyncio.TimerHandle | None = None
        """Runs from when a client that waits for its answer has ended its side."""
        self._n_probes = 0
        self._is_over = False
        """Whether the last answer is sent, and the client is only given time to read it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request, not for ever."""
        super().connection_made(transport)
        self._sending = self._after(self._settings.header_seconds, self._sends_nothing)

    def data_received(self, data: bytes) -> None:
        """Take received bytes; those after the last answer are dropped."""
        if self._is_over:
            return
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Give a client that was refused early the time limit of headers to end its body."""
        super().on_response_complete()
        self._watch()
        if self._probing is not None and not self._is_answering:
            self.transport.close()

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """The client sends nothing more: it may wait for its answer, or be gone.

        Which one is seen when something is sent to it, so something is: see `_probe`.
        """
        if self._probing is not None:
            return True
        asks = self._is_answering and self.conn.their_state in (h11.DONE, h11.MUST_CLOSE)
        if self._is_over or not asks or not self.transport.can_write_eof():  # TLS
            self.transport.close()
            return None
        is_told = self.cycle is not None and self.cycle.response_started
        self._probing = self._after(0 if is_told else _FIRST_PROBE_SECONDS, self._probe)
        return True

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _probe(self) -> None:
        """Send what says nothing, and soon look whether that was refused.

        Before an answer that is `100 Continue`, which clients skip; between chunks of one, a zero
        in front of the next one's size.
        """
        cycle = self.cycle
        if cycle is None or cycle.response_complete or self.transport.is_closing():
            return
        if cycle.scope["http_version"] == "1.1" and self._n_probes < _MOST_PROBES:
            self._n_probes += 1
            before = b"HTTP/1.1 100 Continue\r\n\r\n"
            self.transport.write(b"0" if cycle.response_started else before)
        self._probing = self._after(_REFUSAL_SECONDS, self._look)

    def _look(self) -> None:
        found = self.transport.get_extra_info("socket")
        if found is not None and found.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self.transport.abort()
            return
        self._probing = self._after(_PROBE_SECONDS, self._probe)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all clocks."""
        for timer in (self._sending, self._reading, self._probing):
            if timer is not None:
                timer.cancel()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Give a client that does not read some time."""
        super().pause_writing()
        if self._reading is None:
            self._reading = self._after(self._settings.read_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """It reads."""
        super().resume_writing()
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are not HTTP; uvicorn calls this where it handles the exception."""
        error = sys.exc_info()[1]
        status = getattr(error, "error_status_hint", 400)
        if status == 431:
            self._refuse(ApiError(431, "the headers of the request are too large"))
        else:
            self._refuse(ApiError(status, f"the request is not HTTP: {error or msg}"))

    def _watch(self) -> None:
        """Have a clock run while only the client can continue, and from when that began."""
        conn = self.conn
        owes_headers = conn.their_state is h11.IDLE and bool(conn.trailing_data[0])
        owes_body = conn.their_state is h11.SEND_BODY and conn.our_state not in (
            h11.IDLE,
            h11.SEND_RESPONSE,
            h11.SEND_BODY,
        )
        if owes_headers or owes_body:
            if self._sending is None:
                self._sending = self._after(self._settings.header_seconds, self._sends_nothing)
        elif self._sending is not None and not self._is_over:
            self._sending.cancel()
            self._sending = None

    def _sends_nothing(self) -> None:
        self._sending = None
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            seconds = self._settings.header_seconds
            self._refuse(ApiError(408, f"the headers of the request took more than {seconds} s"))
        else:
            self.transport.close()

    def _refuse(self, error: ApiError) -> None:
        """Answer the request under way with an error, the last thing that the client gets."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True  # what the application would still say is not sent
            self.cycle.message_event.set()
        if self.transport.is_closing():
            return
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):  # within an answer, or after
            self.transport.close()
            return
        body = json_bytes(error.body)
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        answer = h11.Response(
            status_code=error.status, headers=headers, reason=HTTPStatus(error.status).phrase
        )
        for event in (answer, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self._end()

    def _end(self) -> None:
        self._is_over = True
        self._unset_keepalive_if_required()
        if self._sending is not None:
            self._sending.cancel()
        if not self.transport.can_write_eof():  # TLS
            self.transport.close()
            return
        self.transport.write_eof()
        self._sending = self._after(_LINGER_SECONDS, self.transport.close)

    def _after(self, seconds: float, act: Callable[[], None]) -> asyncio.TimerHandle:
        return self.loop.call_later(seconds, act)
