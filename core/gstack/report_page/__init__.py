"""The one look of every page that gstack writes: one file, no network, light and dark, readable on a phone. Cold.

A page extends ``page.html.j2`` and is put together from the parts in ``parts.html.j2``: tiles, tables to sort and
filter (:mod:`~gstack.report_page.tables`), charts (:mod:`~gstack.report_page.charts`) drawn as SVG beforehand.
"""

import os
import stat
from datetime import datetime, timezone
from typing import Any

from gstack.errors import StateError, UsageError
from gstack.state import write_atomic


def render(package: str, template: str, **context: Any) -> str:
    """The page of a package's template (in its folder ``templates``)."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    loader = ChoiceLoader([PackageLoader(package, "templates"), PackageLoader("gstack.report_page", "templates")])
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(moment=moment, day=day, number=number, rate=rate)
    return environment.get_template(template).render(**context)


def write_page(path: str, text: str) -> None:
    """Write a page that a person named, as a whole; where a link leads stays a link. Raises StateError, UsageError."""
    target, mode = _page(path)
    try:
        write_atomic(target, text.encode("utf-8", "backslashreplace"), mode=mode)
    except OSError as error:
        raise StateError(f"{path}: it can't be written ({error.strerror})") from error


def check_page(path: str) -> None:
    """Raise what :func:`write_page` would: better before a long look at sessions than after it."""
    _page(path)


def _page(path: str) -> tuple[str, int]:
    """Where a page goes, links resolved, and the mode that its file gets: that of the file there is."""
    if not path:
        raise UsageError("--html needs the name of a file")
    try:
        target = os.path.realpath(path)
        folder = os.path.dirname(target)
        if os.path.lexists(target):
            found = os.stat(target).st_mode
            if stat.S_ISDIR(found):
                raise StateError(f"{path}: it is a folder, not the file to write the page to")
            if not stat.S_ISREG(found):
                raise StateError(f"{path}: it is no regular file, so no page is written to it")
            if not os.access(target, os.W_OK):
                raise StateError(f"{path}: it is read-only")
            _check_replaceable(target, path)
            mode = stat.S_IMODE(found)
        else:
            mode = _new_mode()
    except (OSError, ValueError) as error:
        raise StateError(f"{path!r}: it can't be written ({getattr(error, 'strerror', None) or error})") from error
    if not os.path.isdir(folder):
        raise StateError(f"{path}: its folder doesn't exist")
    if not os.access(folder, os.W_OK):
        raise StateError(f"{path}: its folder can't be written")
    return target, mode


def _check_replaceable(target: str, path: str) -> None:
    """Raise StateError for a file with content that is no page: a transcript, say, that was named by mistake."""
    with open(target, "rb") as file:
        begins = file.read(1024).lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if begins and not begins.startswith(b"<!doctype html"):
        raise StateError(f"{path}: it is there and no HTML page, so it isn't replaced; name another file")


def _new_mode() -> int:
    """The mode of a new document, as the person's umask has it."""
    umask = os.umask(0o077)
    os.umask(umask)
    return 0o644 & ~umask


def day(seconds: float) -> str:
    """A day, in UTC."""
    return _utc(seconds).strftime("%Y-%m-%d")


def moment(seconds: float) -> str:
    """A minute, in UTC."""
    return _utc(seconds).strftime("%Y-%m-%d %H:%M")


def _utc(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, tz=timezone.utc)


def number(value: float) -> str:
    """A count with thousands set apart."""
    return f"{value:,}"


def rate(value: float | None) -> str:
    """A share from 0 to 1 with two decimals; a dash where there is none."""
    return "\u2013" if value is None else f"{value:.2f}"
