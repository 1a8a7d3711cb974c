"""The one look of every page that gstack writes: one file, no network, light and dark, readable on a phone. Cold.

A page extends ``page.html.j2`` and is put together from the parts in ``parts.html.j2``: tiles, tables to sort and
filter (:mod:`~gstack.report_page.tables`), charts (:mod:`~gstack.report_page.charts`) drawn as SVG beforehand.
"""

from datetime import datetime, timezone
from typing import Any

from gstack.errors import StateError
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
    """Write a page that a person named. Raises StateError."""
    try:
        write_atomic(path, text.encode("utf-8", "backslashreplace"), mode=0o644)
    except OSError as error:
        raise StateError(f"{path}: it can't be written ({error.strerror})") from error


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
