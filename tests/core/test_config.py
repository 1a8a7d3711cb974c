"""The configuration file and the switches (switches S1)."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gstack import config
from gstack.config_edit import set_key, unset_key
from gstack.errors import CheckFailed, StateError, UsageError


def read(tmp_path: Path, text: str | bytes) -> config.Config:
    (tmp_path / "config.yaml").write_bytes(text.encode() if isinstance(text, str) else text)
    return config.read_config(str(tmp_path))


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("gate: on", "on"),
        ("gate: off # why", "off"),
        ('gate: "off"', "off"),
        ("gate: 'off' # x", "off"),
        ("gate:off", None),
        ("  gate: on", None),
        ("# gate: on", None),
        ("gate: on\r", "on"),
        ("gate: YES", "on"),
        ("gate: 0", "off"),
        ("gate: Observe", "observe"),
        ("gate: on\ngate: off", "off"),
    ],
)
def test_lines(tmp_path: Path, line: str, value: str | None) -> None:
    found = config.switch("gate", {}, read(tmp_path, "\ufeff" * 0 + line + "\n"))
    assert (found.value, found.source) == ((value, "config") if value else ("off", "default"))


def test_absent_unreadable_and_invalid_are_three_things(tmp_path: Path) -> None:
    assert config.read_config(str(tmp_path)).status == "absent"
    assert read(tmp_path, b"skill_routing: on\n\xff").status == "unreadable"
    invalid = read(tmp_path, "skill_routing: maybe\n")
    assert invalid.status == "ok"
    assert config.switch("skill_routing", {}, invalid).source == "default"


@pytest.mark.parametrize("make", ["folder", "dangling", "big"])
def test_what_is_no_readable_file_is_unreadable(tmp_path: Path, make: str) -> None:
    path = tmp_path / "config.yaml"
    if make == "folder":
        path.mkdir()
    elif make == "dangling":
        path.symlink_to(tmp_path / "nowhere")
    else:
        path.write_bytes(b"#" * (1 << 20) + b"\n")
    assert config.read_config(str(tmp_path)).status == "unreadable"


def test_an_unreadable_configuration_turns_off_whatever_else_is_set(tmp_path: Path) -> None:
    broken = read(tmp_path, b"\xff")
    env = {"GSTACK_SKILL_ROUTING": "on", "GSTACK_SKILL_CONTRACTS": "on"}
    for name in ("skill_routing", "skill_contracts"):
        found = config.switch(name, env, broken)
        assert (found.value, found.source) == ("off", "config unreadable")
    assert config.switch("gate", {}, broken).value == "on"
    assert config.switch("gate", {"GSTACK_GATE": "off"}, broken).value == "off"


def test_order_environment_configuration_default(tmp_path: Path) -> None:
    found = read(tmp_path, "skill_routing: observe\n")
    assert config.switch("skill_routing", {"GSTACK_SKILL_ROUTING": "on"}, found).source == "env"
    assert config.switch("skill_routing", {"GSTACK_SKILL_ROUTING": ""}, found).value == "observe"
    assert config.switch("skill_routing", {"GSTACK_SKILL_ROUTING": "?"}, found).source == "default"
    assert config.switch("skill_contracts", {}, found).value == "off"


@pytest.mark.parametrize(
    ("user", "project", "value"),
    [
        ("on", "observe", "observe"),
        ("on", "off", "off"),
        ("observe", "on", "observe"),
        ("off", "on", "off"),
        ("on", "?", "on"),
    ],
)
def test_a_project_narrows_and_never_widens(tmp_path: Path, user: str, project: str, value: str) -> None:
    mine = read(tmp_path, f"skill_routing: {user}\ngate: {user}\n")
    theirs = config.Config("x", "ok", {"skill_routing": project, "gate": project})
    assert config.switch("skill_routing", {}, mine, theirs).value == value
    assert config.switch("gate", {}, mine, theirs).value == user


@given(st.binary(max_size=200))
def test_any_bytes_are_a_configuration_or_unreadable(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("config")
    (folder / "config.yaml").write_bytes(data)
    assert config.read_config(str(folder)).status in ("ok", "unreadable")


@given(
    st.sampled_from(["routed_skills", "route_equivalents"]),
    st.text(st.characters(blacklist_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1),
)
def test_what_is_set_is_read_back(tmp_path_factory: pytest.TempPathFactory, key: str, value: str) -> None:
    root = str(tmp_path_factory.mktemp("root"))
    if not value.strip() or ("'" in value and '"' in value and config.plain_value(value) != value.strip()):
        with pytest.raises(UsageError, match=r"empty|quotes"):
            set_key(root, key, value)
        return
    set_key(root, key, value)
    assert config.read_config(root).get(key) == value.strip()


def test_setting_keeps_every_other_line(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(b"# mine\r\nother: 1\r\ngate: on\r\n  nested: x\r\ngate: off\r\nend: 2")
    set_key(str(tmp_path), "gate", "observe")
    set_key(str(tmp_path), "route_threshold", "0.7")
    assert (
        path.read_bytes() == b"# mine\r\nother: 1\r\ngate: observe\r\n  nested: x\r\nend: 2\r\nroute_threshold: 0.7\r\n"
    )
    assert unset_key(str(tmp_path), "gate")
    assert not unset_key(str(tmp_path), "gate")


def test_bad_keys_and_values(tmp_path: Path) -> None:
    root = str(tmp_path)
    with pytest.raises(CheckFailed, match="skill_rooting") as unknown:
        set_key(root, "skill_rooting", "on")
    assert "skill_routing" in unknown.value.hint
    for key, value in (
        ("gate", "maybe"),
        ("route_threshold", "2"),
        ("route_hint", "all"),
        ("routed_skills", "a\nb"),
        ("routed_skills", ""),
    ):
        with pytest.raises(UsageError):
            set_key(root, key, value)
    assert not (tmp_path / "config.yaml").exists()


def test_an_unreadable_file_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_bytes(b"gate: on\n\xff")
    with pytest.raises(StateError, match="not UTF-8 at byte 9"):
        set_key(str(tmp_path), "gate", "off")
    assert (tmp_path / "config.yaml").read_bytes() == b"gate: on\n\xff"


def test_names_of_a_list() -> None:
    assert config.names("[a, 'b'] ") == ["a", "b"]
    assert config.names("a,b  c") == ["a", "b", "c"]


def test_every_default_fits_its_own_key() -> None:
    for key, (_, default, _, text) in config.KEYS.items():
        assert config.problem_with(key, default) is None
        assert text.endswith(".")
