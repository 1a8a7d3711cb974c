"""Trusted projects narrow what the person set, and only as they were when trust was said (switches S2)."""

from pathlib import Path

import pytest

from gstack import trust
from gstack.config import read_config, switch
from gstack.errors import UsageError


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    (folder / ".git").mkdir(parents=True)
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / ".gstack").mkdir()
    (folder / ".gstack" / "config.yaml").write_text("skill_routing: off\nrouted_skills: qa\n")
    return folder


def test_trust_counts_below_the_folder_until_something_changes(tmp_path: Path, project: Path) -> None:
    root = str(tmp_path / "state")
    assert trust.trusted_config(root, str(project)) is None
    trust.trust(root, str(project / "deep"))
    found = trust.trusted_config(root, str(project / "deep" / "er"))
    assert found is not None
    (tmp_path / "state" / "config.yaml").write_text("skill_routing: on\n")
    assert switch("skill_routing", {}, read_config(root), found).value == "off"
    (project / ".gstack" / "skills.yaml").write_text("x: {}\n")
    assert trust.trusted_config(root, str(project)) is None
    trust.trust(root, str(project))
    assert trust.trusted_overlay(root, str(project))[0] == str(project / ".gstack" / "skills.yaml")
    assert trust.untrust(root, str(project))
    assert not trust.untrust(root, str(project))
    assert trust.trusted_overlay(root, str(project))[0] is None


def test_outside_a_repository_only_the_folder_itself(tmp_path: Path) -> None:
    (tmp_path / "a" / ".gstack").mkdir(parents=True)
    (tmp_path / "a" / ".gstack" / "config.yaml").write_text("")
    (tmp_path / "a" / "b").mkdir()
    assert trust.project_folder(str(tmp_path / "a")) == str((tmp_path / "a").resolve())
    assert trust.project_folder(str(tmp_path / "a" / "b")) is None


def test_the_person_s_own_state_is_no_project(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gstack" / "sessions").mkdir(parents=True)
    (tmp_path / ".gstack" / "config.yaml").write_text("gate: off\n")
    with pytest.raises(UsageError, match="to trust"):
        trust.trust(str(tmp_path / ".gstack"), str(tmp_path))


@pytest.mark.parametrize("text", ["", "[]", '{"folders": 3}', '{"folders": {"x": 1}}', "{"])
def test_a_broken_file_trusts_nothing(tmp_path: Path, project: Path, text: str) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "trust.json").write_text(text)
    assert trust.trusted_config(str(tmp_path / "state"), str(project)) is None
