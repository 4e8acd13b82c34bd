"""Who may ask: the right host, the right token, and only the dashboard's own page.

Around the whole app. A page of another site that has its name point to this machine (DNS
rebinding) is refused by the Host header; one that sends requests to it, by where they come from.
"""

import hmac
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "media-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}
"""Sent with every answer: nothing but the page's own files runs, and nothing is kept."""

COOKIE = "stepladder-token"


@dataclass(frozen=True, kw_only=True)
class Access:
    """Who may ask."""

    hosts: tuple[str, ...] = LOOPBACK
    """Names of this machine in the Host header; empty allows any, which needs a token."""

    token: str | None = None
    """What the first address must carry; None needs none."""


class Guard:
    """Lets requests through that may ask, and adds the headers to every answer."""

    def __init__(self, app: ASGIApp, access: Access):
        self.app, self.access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = [(k, v) for k, v in message["headers"] if k.decode().lower() not in HEADERS]
                added = [(k.encode(), v.encode()) for k, v in HEADERS.items()]
                message = {**message, "headers": given + added}
            await send(message)

        refusal = self._refusal(headers, scope["method"])
        if refusal:
            response = PlainTextResponse(f"{refusal}\n", status_code=403)
        elif self.access.token is None or self._has_cookie(headers):
            await self.app(scope, receive, send_with_headers)
            return
        else:
            response = self._with_token(scope)
        await response(scope, receive, send_with_headers)

    def _refusal(self, headers: Headers, method: str) -> str | None:
        """Return why a request is refused; None if it is not."""
        host = headers.get("host", "")
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        if self.access.hosts and name.lower() not in self.access.hosts:
            return f"this dashboard answers to {self.access.hosts[0]}, not to another name"
        site = headers.get("sec-fetch-site")
        if site in ("cross-site", "same-site") and headers.get("sec-fetch-mode") != "navigate":
            return "this dashboard answers its own page only"
        origin = headers.get("origin")
        if method not in ("GET", "HEAD") and origin not in (None, f"http://{host}"):
            return "this dashboard answers its own page only"
        return None

    def _has_cookie(self, headers: Headers) -> bool:
        try:
            morsel = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return False
        assert self.access.token is not None
        return morsel is not None and hmac.compare_digest(
            morsel.value.encode(), self.access.token.encode()
        )

    def _with_token(self, scope: Scope) -> PlainTextResponse | RedirectResponse:
        """Take the token out of the address and into a cookie, or refuse."""
        assert self.access.token is not None
        words = parse_qsl(scope.get("query_string", b"").decode("latin-1"))
        given = next((value for name, value in words if name == "token"), "")
        if not hmac.compare_digest(given.encode(), self.access.token.encode()):
            return PlainTextResponse(
                "this dashboard needs its token: open the address that the command printed\n",
                status_code=401,
            )
        rest = urlencode([(name, value) for name, value in words if name != "token"])
        response = RedirectResponse(f"{scope['path']}{'?' if rest else ''}{rest}", status_code=303)
        response.set_cookie(COOKIE, self.access.token, httponly=True, samesite="strict")
        return response
