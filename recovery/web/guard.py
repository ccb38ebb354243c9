"""Who may read: the host that was asked for, the token; and what a browser is told each time."""

from __future__ import annotations

import base64
import binascii
import hmac
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True, slots=True)
class Guard:
    """Stands before every answer. Without a token only names of this machine are answered.

    A page of another site whose name was made to point here (DNS rebinding) asks for that name.
    """

    app: ASGIApp
    token: str = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers itself, or lets the page answer, with the headers added."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("content-security-policy", POLICY)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refusal = self._refusal(Headers(scope=scope))
        await (refusal or self.app)(scope, receive, with_headers)

    def _refusal(self, headers: Headers) -> PlainTextResponse | None:
        if self.token:
            if is_allowed(headers.get("authorization", ""), self.token):
                return None
            asks = {"www-authenticate": 'Basic realm="recover: any name, the token as password"'}
            return PlainTextResponse("the token is missing or wrong\n", 401, headers=asks)
        host = headers.get("host", "")
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if name in _LOOPBACK:
            return None
        return PlainTextResponse("ask for it as 127.0.0.1 or localhost\n", 421)


def is_allowed(authorization: str, token: str) -> bool:
    """Claims that the header bears the token: as ``Bearer``, or as the password of ``Basic``."""
    kind, _, value = authorization.partition(" ")
    given = value.strip()
    if kind.lower() == "basic":
        try:
            given = base64.b64decode(given, validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return False
    elif kind.lower() != "bearer":
        return False
    return hmac.compare_digest(given.encode(), token.encode())
