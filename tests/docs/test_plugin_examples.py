"""The examples on the pages for plug-in authors are whole: written to a folder, their own tests pass."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from plugin_pages import PAGES, ROOT, files

WITH_TESTS = [page for page in PAGES if "pyproject.toml" in files(page) and page.stem != "host-adapters"]


@pytest.mark.parametrize("page", WITH_TESTS, ids=lambda page: page.name)
def test_the_example_passes_its_own_tests(page: Path, tmp_path: Path) -> None:
    for name, text in files(page).items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    env = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "LANG") if name in os.environ}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=env | {"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


def test_three_pages_have_one() -> None:
    assert {page.stem for page in WITH_TESTS} == {"contract-kinds", "trigger-scorers", "gate-resolvers"}


def test_the_page_on_hosts_shows_the_example_that_ci_installs() -> None:
    """tox's thirdparty runs that distribution's tests."""
    page = next(page for page in PAGES if page.stem == "host-adapters")
    example = ROOT / "examples" / "vendor-jsonl-host"
    shown = files(page)
    assert {"pyproject.toml", "src/vendor_jsonl_host/__init__.py", "tests/test_vendor_jsonl_host.py"} <= set(shown)
    for name, text in shown.items():
        assert text == (example / name).read_text(encoding="utf-8"), f"{name} differs from examples/vendor-jsonl-host"
