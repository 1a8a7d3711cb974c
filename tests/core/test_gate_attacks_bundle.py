"""What somebody tries against the bundle, one test each (gate G4); against the network: test_gate_attacks_network."""

import base64
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from gate_support import BASE, ORG, OTHER_PRIVATE, OTHER_PUBLIC, PRIVATE, PUBLIC, envelope, install, payload, trust
from hypothesis import given, settings
from hypothesis import strategies as st

from gstack.api import GateContext, Invocation
from gstack.errors import BundleError, BundleMissing, GstackError
from gstack.gate import index as index_module
from gstack.gate.bundle import install_bundle, installed_path, open_bundle, verify_installed
from gstack.gate.decision import decide
from gstack.gate.index import MAGIC, Index, bundle_path, index_path, load, stored, trust_path
from gstack.gate.signing import BundleRefused, private_key, rotation, sign
from gstack_plugins.policy_bundle import PolicyBundle

BANNED = "acme/wipe-disk"


@pytest.fixture
def root(tmp_path: Path) -> str:
    install(tmp_path, payload())
    return str(tmp_path)


def refused(root: str, data: bytes, cause: str) -> str:
    """Try to install ``data``: it must be refused for this cause, and the last good bundle must still decide."""
    before = Path(bundle_path(root)).read_bytes()
    with pytest.raises(BundleRefused) as error:
        install_bundle(root, data)
    assert error.value.cause == cause
    assert error.value.exit_code == 3
    assert Path(bundle_path(root)).read_bytes() == before
    assert action(root, BANNED) == "block"
    return error.value.message


def action(root: str, name: str) -> "str | None":
    """What the gate says with nothing but the files to go by; ``unusable`` when it fails open."""
    context = GateContext(root, time.time())
    outcome = decide(
        [("policy_bundle", PolicyBundle())], Invocation(name), context, lambda _, function, *args: function(*args)
    )
    if outcome.bundle_error is not None:
        assert outcome.decision is None, "an unusable bundle decides nothing"
        return "unusable"
    return outcome.decision.action if outcome.decision else None


def parts(data: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(data)
    return found


def packed(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


# --------------------------------------------------------------------------------------- at sync time


@pytest.mark.parametrize("keep_key_id", [True, False])
@pytest.mark.parametrize("signature", ["gone", None, "", "  ", 7, "!!!", "AAAA", base64.b64encode(b"\0" * 64).decode()])
def test_stripped_signature(root: str, signature: object, keep_key_id: bool) -> None:
    made = parts(envelope(payload(version=8)))
    made["signature"] = signature
    if signature == "gone":
        del made["signature"]
    if not keep_key_id:
        del made["key_id"]
    refused(root, packed(**made), "signature")


@pytest.mark.parametrize("keep_key_id", [True, False])
def test_swapped_signature(root: str, keep_key_id: bool) -> None:
    made = parts(envelope(payload(version=8)))
    made["signature"] = parts(envelope(payload(version=9)))["signature"]
    if not keep_key_id:
        del made["key_id"]
    refused(root, packed(**made), "signature")


@pytest.mark.parametrize("key_id", [OTHER_PUBLIC.id, PUBLIC.id, None], ids=["theirs", "ours", "none"])
def test_wrong_key(root: str, key_id: "str | None") -> None:
    made = parts(envelope(payload(version=8), OTHER_PRIVATE)) | {"key_id": key_id}
    message = refused(root, packed(**made), "signature")
    assert PUBLIC.id in message


def test_swapped_payload(root: str) -> None:
    made = parts(envelope(payload(version=8)))
    made["payload"] = made["payload"].replace("banned", "approved")
    refused(root, packed(**made), "signature")


def test_payload_with_another_spelling_of_the_same_json(root: str) -> None:
    made = parts(envelope(payload(version=8)))
    made["payload"] = json.dumps(json.loads(made["payload"]), indent=1)
    refused(root, packed(**made), "signature")


@settings(max_examples=40)
@given(data=st.data())
def test_one_changed_character_of_the_payload(data: st.DataObject) -> None:
    made = parts(envelope(payload(version=8)))
    text = made["payload"]
    place = data.draw(st.integers(0, len(text) - 1))
    char = data.draw(st.characters(codec="utf-8").filter(lambda one: one != text[place]))
    made["payload"] = text[:place] + char + text[place + 1 :]
    with pytest.raises(BundleRefused):
        open_bundle(packed(**made), PUBLIC, ORG)


def test_replayed_old_version(root: str) -> None:
    install_bundle(root, envelope(payload(version=8)))
    assert "older than version 8" in refused(root, envelope(payload(version=7)), "rollback")


def test_replayed_old_version_after_the_bundle_was_deleted(root: str) -> None:
    install_bundle(root, envelope(payload(version=8)))
    os.unlink(bundle_path(root))
    with pytest.raises(BundleRefused) as error:
        install_bundle(root, envelope(payload(version=7)))
    assert error.value.cause == "rollback"
    assert not os.path.exists(bundle_path(root))


def test_replayed_old_version_after_the_note_was_deleted(root: str) -> None:
    install_bundle(root, envelope(payload(version=8)))
    os.unlink(installed_path(root))
    refused(root, envelope(payload(version=7)), "rollback")


def test_same_version_with_other_bytes(root: str) -> None:
    refused(root, envelope(payload(manifest_index={})), "conflict")


def test_other_org(root: str) -> None:
    refused(root, envelope(payload(org="other", version=8)), "org")


def test_future_date(root: str) -> None:
    refused(root, envelope(payload(version=8, issued_at=time.time() + 25 * 3600)), "future")


@settings(max_examples=30)
@given(cut=st.integers(0, 400))
def test_truncated_file(cut: int) -> None:
    data = envelope(payload(version=8))
    with pytest.raises(BundleRefused):
        open_bundle(data[: min(cut, len(data) - 3)], PUBLIC, ORG)


def test_changed_key_at_the_server(root: str) -> None:
    """The bundle and the key there are both replaced: what is pinned here decides."""
    message = refused(root, envelope(payload(version=8), OTHER_PRIVATE), "signature")
    assert "--public-key" in message


def test_rotation_statement_signed_by_the_new_key_itself(root: str) -> None:
    forged = rotation(ORG, private_key(OTHER_PRIVATE), OTHER_PUBLIC, time.time())
    refused(root, envelope(payload(version=8), OTHER_PRIVATE, rotations=[forged]), "signature")


def test_rotation_statement_of_another_organisation(root: str) -> None:
    other = rotation("other", private_key(PRIVATE), OTHER_PUBLIC, time.time())
    refused(root, envelope(payload(version=8), OTHER_PRIVATE, rotations=[other]), "signature")


def test_rotation_statement_with_another_key_put_in(root: str) -> None:
    real = rotation(ORG, private_key(PRIVATE), PUBLIC, time.time())
    real["statement"] = json.dumps(json.loads(real["statement"]) | {"new_key": OTHER_PUBLIC.pem})
    refused(root, envelope(payload(version=8), OTHER_PRIVATE, rotations=[real]), "signature")


def test_a_signed_payload_passed_off_as_a_rotation_statement(root: str) -> None:
    made = parts(envelope(payload(version=8, new_key=OTHER_PUBLIC.pem)))
    step = {"statement": made["payload"], "signature": made["signature"]}
    refused(root, envelope(payload(version=9), OTHER_PRIVATE, rotations=[step]), "signature")


def test_the_old_key_after_it_handed_over(root: str) -> None:
    statement = rotation(ORG, private_key(PRIVATE), OTHER_PUBLIC, time.time())
    install_bundle(root, envelope(payload(version=8), OTHER_PRIVATE, rotations=[statement]))
    refused(root, envelope(payload(version=9)), "signature")


@pytest.mark.parametrize(
    "rotations", ["x", [7], [{}], [{"statement": "x"}], [{"statement": "{}", "signature": "AAAA"}], [{}] * 33]
)
def test_odd_rotations(root: str, rotations: object) -> None:
    made = parts(envelope(payload(version=8), OTHER_PRIVATE)) | {"rotations": rotations}
    with pytest.raises(BundleRefused):
        install_bundle(root, packed(**made))
    assert action(root, BANNED) == "block"


def test_oversized_bundle(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gstack.gate.signing.LIMIT", 1000)
    refused(root, envelope(payload(version=8, pad="x" * 2000)), "shape")


def test_payload_with_lone_surrogates(root: str) -> None:
    made = parts(envelope(payload(version=8)))
    refused(root, json.dumps(made | {"payload": made["payload"] + "\ud800"}).encode(), "shape")


def test_a_name_twice_in_the_payload_means_the_same_to_all_readers(root: str) -> None:
    """Both clients take the last one; what was signed is what is decided."""
    text = json.dumps(payload(version=8))[:-1] + ', "manifest_index": {"acme/wipe-disk": {"status": "banned"}}}'
    install_bundle(root, sign(text, private_key(PRIVATE)))
    assert action(root, BANNED) == "block"


# --------------------------------------------------------------------------------- on this machine's disk


@pytest.mark.parametrize("reset_time", [True, False])
def test_local_bundle_edited_in_place_with_the_same_size(root: str, reset_time: bool) -> None:
    path = Path(bundle_path(root))
    before = path.stat()
    data = path.read_bytes()
    with open(path, "r+b") as file:
        file.write(data.replace(b"banned", b"active"))
    if reset_time:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert action(root, BANNED) == "unusable"


def test_local_bundle_replaced_by_one_of_another_key(root: str) -> None:
    Path(bundle_path(root)).write_bytes(envelope(payload(version=8, manifest_index={}), OTHER_PRIVATE))
    assert action(root, BANNED) == "unusable"


def test_local_bundle_replaced_by_an_older_genuine_one(root: str) -> None:
    install_bundle(root, envelope(payload(version=8)))
    Path(bundle_path(root)).write_bytes(envelope(payload(version=7, manifest_index={})))
    assert action(root, BANNED) == "unusable"
    with pytest.raises(BundleRefused, match="version 8 was installed here"):
        verify_installed(root)


def test_local_bundle_replaced_by_a_genuine_one_of_another_organisation(root: str) -> None:
    Path(bundle_path(root)).write_bytes(envelope(payload(org="other", version=9, manifest_index={})))
    assert action(root, BANNED) == "unusable"


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff\xfe", b'{"payload": 7, "signature": "x"}'])
def test_local_bundle_corrupt(root: str, data: bytes) -> None:
    Path(bundle_path(root)).write_bytes(data)
    assert action(root, BANNED) == "unusable"


def test_local_bundle_deleted_while_its_index_stays(root: str) -> None:
    os.unlink(bundle_path(root))
    with pytest.raises(BundleMissing):
        load(root)


def test_pinned_key_swapped_on_disk(root: str) -> None:
    from gstack.gate.trust import Trust, write_trust

    write_trust(root, Trust(ORG, BASE, OTHER_PUBLIC, "first use", 0.0))
    assert action(root, BANNED) == "unusable"


def test_pinned_key_deleted(root: str) -> None:
    os.unlink(trust_path(root))
    assert action(root, BANNED) == "unusable"


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
@pytest.mark.parametrize("place", [bundle_path, trust_path, index_path])
def test_a_folder_or_a_pipe_in_place_of_a_file(root: str, place: Any, make: Any) -> None:
    """Neither holds the hook up."""
    os.unlink(place(root))
    make(place(root))
    if place is index_path:
        assert action(root, BANNED) == "block"
    else:
        with pytest.raises(BundleError, match="is not a regular file"):
            load(root)


@settings(max_examples=60)
@given(data=st.data())
def test_index_with_broken_bytes_never_decides_wrongly_and_never_crashes(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    root = tmp_path_factory.mktemp("root")
    install(root, payload())
    path = Path(index_path(str(root)))
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole) - 1))
    path.write_bytes(whole[:cut] + b"\0" * data.draw(st.sampled_from((0, 3, len(whole) - cut))))
    assert action(str(root), BANNED) == "block"


def test_index_of_another_bundle_put_beside_ours(root: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    install(other, payload(manifest_index={}))
    Path(index_path(root)).write_bytes(Path(index_path(str(other))).read_bytes())
    assert not stored(root)
    assert action(root, BANNED) == "block"


def test_symlinked_index(root: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    aside = tmp_path_factory.mktemp("aside") / "index"
    os.rename(index_path(root), aside)
    os.symlink(aside, index_path(root))
    assert not stored(root)
    assert action(root, BANNED) == "block"


@pytest.mark.parametrize("where", ["", "gate", "gate/bundle.json", "gate/trust.json"])
@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_world_writable_state_folder(root: str, where: str, mode: int) -> None:
    """Nothing compiled is believed there, the bundle is verified each time, and the person is told."""
    os.chmod(os.path.join(root, where), mode)
    assert action(root, BANNED) == "block"
    found = load(root)
    assert not isinstance(found, Index)
    assert "can be written by another user" in found.notice
    before = Path(index_path(root)).stat().st_mtime_ns
    index_module.store_missing(root)
    assert Path(index_path(root)).stat().st_mtime_ns == before, "nothing is stored either"


def test_world_writable_index(root: str) -> None:
    os.chmod(index_path(root), 0o666)
    assert not stored(root)
    assert not isinstance(load(root), Index)
    assert action(root, BANNED) == "block"


def test_state_folder_of_somebody_else(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = os.stat(root).st_uid
    if owner == 0:
        for name in ("", "gate", "gate/bundle.json", "gate/trust.json", "gate/bundle.index"):
            os.chown(os.path.join(root, name), 12345, -1)
    else:
        monkeypatch.setattr(index_module.sys_os, "geteuid", lambda: owner + 1)
    assert not stored(root)
    found = load(root)
    assert "belongs to" in found.notice
    assert action(root, BANNED) == "block"


def test_a_change_within_the_clocks_tick_is_not_missed(root: str) -> None:
    """As in git: an index made in the same tick as its bundle could hide a later change, so it doesn't count."""
    found = load(root)
    index_module._forget()
    os.utime(bundle_path(root))
    with pytest.raises(AttributeError):
        found.store  # noqa: B018 - it was a stored one
    fresh = load(root)
    assert not isinstance(fresh, Index)
    index_module.store_missing(root)
    if not stored(root):  # made within the tick
        time.sleep(0.1)
        index_module._forget()
        load(root)
        index_module.store_missing(root)
    assert stored(root)


def test_errors_of_a_bundle_have_one_line_and_no_traceback(root: str) -> None:
    for data in (b"", b"{", envelope(payload(version=1)), packed(payload="x", signature="y")):
        with pytest.raises(GstackError) as error:
            install_bundle(root, data)
        assert "\n" not in error.value.message


def test_nobody_can_install_without_a_key(tmp_path: Path) -> None:
    trust(tmp_path)
    os.unlink(trust_path(str(tmp_path)))
    with pytest.raises(BundleError):
        install_bundle(str(tmp_path), envelope(payload()))
    assert not os.path.exists(bundle_path(str(tmp_path)))


@settings(max_examples=60)
@given(data=st.data())
def test_index_with_one_damaged_record_does_not_open_the_gate(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    root = tmp_path_factory.mktemp("root")
    install(root, payload())
    path = Path(index_path(str(root)))
    whole = bytearray(path.read_bytes())
    for place in range(len(whole) - 60, len(MAGIC) + 400, -data.draw(st.integers(7, 40))):
        whole[place] = 0xFF  # no type code of marshal
    path.write_bytes(bytes(whole))
    assert action(str(root), BANNED) in ("block", "unusable")
