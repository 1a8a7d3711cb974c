"""Fixtures that every part's tests share."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("gstack", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gstack")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the spec's cases, captures and corpus that lies beside a working checkout."""
    for parent in Path(__file__).resolve().parents:
        folder = parent.parent / "shared"
        if (folder / "cases" / "routing.jsonl").is_file():
            return folder
    pytest.skip("the shared cases and corpus don't lie beside this checkout")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home; every variable that points gstack or a host elsewhere is gone."""
    folder = tmp_path / "home"
    folder.mkdir()
    for name in list(os.environ):
        if name.startswith(("GSTACK_", "CLAUDE", "XDG_", "CONDUCTOR_", "OPENCLAW_")) or name in (
            "CI",
            "GITHUB_ACTIONS",
        ):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    return folder
