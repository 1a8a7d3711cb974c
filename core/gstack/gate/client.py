"""Talking to whatever serves an organisation's policy: a control plane, static HTTPS hosting, or a folder
(gate G7).

All three speak the same paths below the base URL: ``api/bundle/key`` (PEM), ``api/bundle/<org>`` (the
envelope), ``api/skills/<org>`` (what may be installed) and, live servers only, ``api/audit/ingest``. HTTPS
is required except for loopback; a redirect to another origin is refused, as is an answer over its limit. No
error carries the key. Cold.
"""

import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from urllib.parse import quote, unquote, urljoin, urlsplit
from urllib.request import url2pathname

import httpx

from gstack import __version__
from gstack.errors import GstackError
from gstack.gate.credentials import Credentials, is_loopback

#: Largest bundle that is fetched, in bytes.
BUNDLE_LIMIT = 64 << 20

#: Largest other answer, in bytes.
LIMIT = 8 << 20

#: How many redirects within the same origin are followed.
REDIRECTS = 3

#: Longest wait for the next sign of life of a server, in seconds.
QUIET = 10.0

#: The header that carries the key.
KEY_HEADER = "X-Skillsvault-Key"

#: Status, ``Location`` and body of one exchange.
_Answer = tuple[int, str, bytes]


class FetchError(GstackError):
    """The server can't be reached, or its answer can't be used; ``status`` is None without an answer."""

    code = "GSTACK_NETWORK_ERROR"

    def __init__(self, message: str, *, status: int | None = None, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status

    @property
    def absent(self) -> bool:
        """Whether the server says that it has no such thing."""
        return self.status in (404, 410)


class Client:
    """A connection to one base URL; use it in ``with``.

    ``deadline`` bounds each request as a whole, in seconds. ``transport`` replaces the network in tests.
    """

    def __init__(
        self,
        credentials: Credentials,
        *,
        deadline: float = 60.0,
        transport: httpx.BaseTransport | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._base = credentials.base_url.rstrip("/") + "/"
        self._key = credentials.key
        self._deadline = deadline
        self._clock = clock
        self._http: httpx.Client | None = None
        if not credentials.is_file:
            headers = {"User-Agent": f"gstack/{__version__}", "Accept-Encoding": "gzip"}
            if credentials.key:
                headers[KEY_HEADER] = credentials.key
            parts = urlsplit(self._base)
            self._http = httpx.Client(
                headers=headers,
                timeout=min(QUIET, deadline),
                transport=transport,
                # a proxy of the environment would get the key of a loopback server in plain text
                trust_env=not is_loopback(parts.hostname or ""),
                # loading the certificates costs 50 ms, and plain HTTP (loopback only) has no use for them
                verify=parts.scheme == "https",
                follow_redirects=False,
            )

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the connections back."""
        if self._http is not None:
            self._http.close()

    def url(self, path: str, *, relative_to: str = "") -> str:
        """The address of ``path``, which may be relative to another path (as links of a page are).

        Raises FetchError when it would lie outside the base URL.
        """
        try:
            found = urljoin(urljoin(self._base, relative_to), path)
            base, parts = urlsplit(self._base), urlsplit(found)
        except ValueError:
            raise FetchError(f"the server points at something that is no address: {path[:100]!r}") from None
        inside = unquote(parts.path).startswith(unquote(base.path))
        climbs = any(part in ("..", ".") for part in unquote(parts.path).split("/"))
        if _origin(base.geturl()) != _origin(found) or not inside or climbs or "\\" in unquote(parts.path):
            raise FetchError(f"the server points at {_shown(found)}, outside {_shown(self._base)}: refused")
        return found

    def get(self, path: str, *, limit: int = LIMIT, relative_to: str = "") -> bytes:
        """What lies at ``path``. Raises FetchError."""
        with self._hiding():
            return self._get(path, limit, relative_to)

    def _get(self, path: str, limit: int, relative_to: str) -> bytes:
        url = self.url(path, relative_to=relative_to)
        if self._http is None:
            return _read_local(url, self._base, limit)
        until = self._clock() + self._deadline
        for _ in range(REDIRECTS + 1):
            status, location, body = self._bounded("GET", url, limit, until)
            if status == 200:
                return body
            if status not in (301, 302, 303, 307, 308):
                raise FetchError(f"{_shown(url)}: the server said {_said(status)}", status=status)
            url = _next_hop(url, location)
        raise FetchError(f"{_shown(url)}: more than {REDIRECTS} redirects")

    def post(self, path: str, body: bytes, *, within: float | None = None) -> int:
        """Send JSON to ``path``: the status, whatever it is; redirects aren't followed. Raises FetchError.

        ``within`` is the time for this request in seconds, where it is less than the client's deadline.
        """
        url = self.url(path)
        if self._http is None:
            return 501
        until = self._clock() + (self._deadline if within is None else within)
        with self._hiding():
            return self._bounded("POST", url, LIMIT, until, body)[0]

    @contextmanager
    def _hiding(self) -> Iterator[None]:
        """Take the key out of what a FetchError says: a server may send it back in whatever is quoted."""
        try:
            yield
        except FetchError as error:
            raise FetchError(self._hidden(error.message), status=error.status, hint=error.hint) from None

    def _hidden(self, text: str) -> str:
        for form in (self._key, segment(self._key)) if self._key else ():
            text = text.replace(form, "***")
        return text

    def _bounded(self, method: str, url: str, limit: int, until: float, body: bytes | None = None) -> _Answer:
        """One exchange that returns in time even when a name server or a dribbling server doesn't.

        It runs on a daemon thread, which is left behind when time is up: httpx bounds single reads only.
        """
        outcome: list[_Answer | FetchError] = []

        def run() -> None:
            try:
                outcome.append(self._exchange(method, url, limit, until, body))
            except FetchError as error:
                outcome.append(error)

        worker = threading.Thread(target=run, daemon=True)
        worker.start()
        worker.join(max(0.0, until - self._clock()))
        if not outcome:
            raise FetchError(f"{_shown(url)}: the server doesn't answer in time")
        found = outcome[0]
        if isinstance(found, FetchError):
            raise found
        return found

    def _exchange(self, method: str, url: str, limit: int, until: float, body: bytes | None) -> _Answer:
        assert self._http is not None
        headers = {"Content-Type": "application/json"} if body is not None else {}
        try:
            with self._http.stream(method, url, content=body, headers=headers) as answer:
                wanted = answer.status_code == 200 and method == "GET"
                data = self._body(answer, url, limit, until) if wanted else b""
                return answer.status_code, answer.headers.get("location", ""), data
        except httpx.TimeoutException:
            raise FetchError(f"{_shown(url)}: the server doesn't answer in time") from None
        except httpx.ProtocolError as error:
            # its message quotes what was sent or received
            ended = str(error).startswith(("Server disconnected", "peer closed connection"))
            what = "the server closed the connection too early" if ended else "the answer is no HTTP"
            raise FetchError(f"{_shown(url)}: {what}") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError, RuntimeError, ValueError) as error:
            raise FetchError(f"{_shown(url)} can't be reached: {_cause(self._hidden(_words(error)))}") from None

    def _body(self, answer: httpx.Response, url: str, limit: int, until: float) -> bytes:
        packed = answer.headers.get("content-encoding", "").strip().lower()
        if packed not in ("", "identity", "gzip"):
            raise FetchError(f"{_shown(url)}: the answer is packed in a way that wasn't asked for")
        announced = answer.headers.get("content-length", "")
        data = bytearray()
        if not (announced.isdigit() and int(announced) > limit):
            for part in answer.iter_bytes():
                data += part
                if len(data) > limit:
                    break
                if self._clock() > until:
                    raise FetchError(f"{_shown(url)}: the server doesn't answer in time")
            else:
                return bytes(data)
        raise FetchError(f"{_shown(url)}: the answer is larger than {limit >> 20} MiB, which is refused")


def segment(text: str) -> str:
    """``text`` as one segment of a path or one value of a query."""
    return quote(text, safe="")


def _next_hop(url: str, location: str) -> str:
    """Where a redirect leads, if it stays within the origin: the key goes nowhere else. Raises FetchError."""
    try:
        found = urljoin(url, location)
    except ValueError:
        found = ""
    if not location or _origin(found) != _origin(url):
        raise FetchError(f"{_shown(url)} redirects to {_shown(found)}: another place, refused")
    return found


def _origin(url: str) -> tuple[str, str, int | None]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return ("", "", None)
    if port is None:
        port = {"https": 443, "http": 80}.get(parts.scheme)
    host = (parts.hostname or "").lower()
    if parts.username is not None or parts.password is not None:
        host = "@" + host  # never the origin of a base URL, which has neither
    return (parts.scheme, "" if parts.scheme == "file" and host == "localhost" else host, port)


def _shown(url: str) -> str:
    """A URL as errors show it: no query, no user, no control characters, not endless."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an unreadable address"
    text = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    return "".join(char if char.isprintable() else "?" for char in text)[:200]


def _said(status: int) -> str:
    meaning = {
        401: "401: it doesn't accept the key (run 'gstack login' again)",
        403: "403: the key may not do this (ask for another one, then run 'gstack login')",
        404: "404: there is no such thing (is the organisation's name right?)",
        429: "429: too many requests; try later",
    }
    return meaning.get(status, str(status))


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__


def _cause(text: str) -> str:
    """What went wrong, in the library's words, on one line; the key is out of it already, so no part is left."""
    return "".join(char if char.isprintable() else " " for char in text)[:200]


def _read_local(url: str, base: str, limit: int) -> bytes:
    """A file of a static site in a folder; links that lead out of it are refused. Raises FetchError."""
    parts = urlsplit(url)
    path, top = url2pathname(parts.path), os.path.realpath(url2pathname(urlsplit(base).path))
    if parts.query:
        raise FetchError(f"{_shown(url)}: a folder answers no questions", status=404)
    try:
        real = os.path.realpath(path)
        if os.path.commonpath([real, top]) != top:
            raise FetchError(f"{_shown(url)} leads out of {_shown(base)}: refused")
        # O_NONBLOCK: a pipe must not hold us up
        fd = os.open(real, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise FetchError(f"{_shown(url)} is not a regular file")
            data = file.read(limit + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise FetchError(f"{_shown(url)}: there is no such file", status=404) from None
    except (OSError, ValueError) as error:
        raise FetchError(f"{_shown(url)} can't be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > limit:
        raise FetchError(f"{_shown(url)}: the file is larger than {limit >> 20} MiB, which is refused")
    return data
