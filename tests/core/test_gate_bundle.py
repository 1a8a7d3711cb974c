"""Keys, envelopes, checks, pinning and installation (gate G4); attacks are in test_gate_attacks_bundle."""

import base64
import hashlib
import json
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import skillsvault
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from gate_support import BASE, ORG, OTHER_PRIVATE, OTHER_PUBLIC, PRIVATE, PUBLIC, envelope, install, payload, trust
from hypothesis import given, settings
from hypothesis import strategies as st

from gstack.errors import BundleError, StateError
from gstack.gate.bundle import (
    Installed,
    check_payload,
    check_successor,
    install_bundle,
    open_bundle,
    read_installed,
    verify_installed,
)
from gstack.gate.signing import BundleRefused, new_keys, parse_envelope, private_key, public_key, rotation, sign
from gstack.gate.trust import forget, pin, read_trust


def test_a_key_id_is_the_start_of_the_sha256_of_its_der_form() -> None:
    der = PUBLIC.public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert PUBLIC.id == hashlib.sha256(der).hexdigest()[:16]
    assert public_key(PUBLIC.pem) == PUBLIC


def test_what_we_sign_the_published_client_verifies() -> None:
    made = json.loads(envelope(payload()))
    assert skillsvault._verify_ed25519(PUBLIC.pem, made["payload"], made["signature"])
    assert made["key_id"] == PUBLIC.id


def test_we_verify_an_envelope_of_another_signer_without_a_key_id() -> None:
    text = json.dumps(payload(), ensure_ascii=False)
    made = {"payload": text, "signature": base64.b64encode(private_key(PRIVATE).sign(text.encode())).decode()}
    assert open_bundle(json.dumps(made).encode(), PUBLIC, ORG).version == 7


def test_a_key_id_that_is_named_otherwise_does_not_matter_while_the_signature_is_right() -> None:
    made = json.loads(envelope(payload())) | {"key_id": "k1"}
    assert open_bundle(json.dumps(made).encode(), PUBLIC, ORG).org == ORG


@pytest.mark.parametrize("pem", ["", "x", b"\xff\xfe", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"])
def test_what_is_no_public_key(pem: "str | bytes") -> None:
    with pytest.raises(BundleRefused, match="no Ed25519 key") as refused:
        public_key(pem)
    assert refused.value.cause == "key"


def test_a_private_key_is_no_public_one_and_the_other_way_round() -> None:
    with pytest.raises(BundleRefused):
        public_key(PRIVATE)
    with pytest.raises(BundleRefused):
        private_key(PUBLIC.pem.encode())


def test_a_key_of_another_kind_is_refused() -> None:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    pem = X25519PrivateKey.generate().public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    with pytest.raises(BundleRefused):
        public_key(pem)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"org": ""}, "org is no text"),
        ({"org": 7}, "org is no text"),
        ({"version": "7"}, "version is no whole number"),
        ({"version": True}, "version"),
        ({"version": -1}, "version"),
        ({"version": 1.5}, "version"),
        ({"version": None}, "version"),
        ({"issued_at": "yesterday"}, "issued_at is no time"),
        ({"namespaces": "acme"}, "namespaces is no list"),
        ({"namespaces": [7]}, "a namespace is no text"),
        ({"policies": {}}, "policies is no list"),
        ({"policies": [{}, 7]}, "policy number 2"),
        ({"manifest_index": []}, "manifest_index is no object"),
        ({"manifest_index": {"acme/x": "banned"}}, "'acme/x'"),
        ({"defaults": "warn"}, "defaults is no object"),
    ],
)
def test_a_payload_of_the_wrong_shape_is_refused_as_a_whole(change: dict[str, Any], words: str) -> None:
    """Dropping only the broken part could drop a ban."""
    with pytest.raises(BundleRefused, match=words) as refused:
        check_payload(payload(**change))
    assert refused.value.cause == "shape"


def test_missing_and_unknown_parts_are_fine() -> None:
    check_payload({"org": "acme", "version": 1, "from_the_future": [1]})


@pytest.mark.parametrize("value", [None, [], "x", 7])
def test_a_payload_that_is_no_object(value: object) -> None:
    with pytest.raises(BundleRefused):
        check_payload(value)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_any_json_is_a_payload_or_refused(value: object) -> None:
    fine = isinstance(value, dict) and isinstance(value.get("org"), str) and isinstance(value.get("version"), int)
    with nullcontext() if fine else pytest.raises(BundleRefused):
        check_payload(value)


@settings(max_examples=80)
@given(st.binary(max_size=200))
def test_any_bytes_are_an_envelope_or_refused(data: bytes) -> None:
    with pytest.raises(BundleRefused):
        parse_envelope(data)


def test_deep_nesting_is_refused_not_a_crash() -> None:
    text = "[" * 100_000
    with pytest.raises(BundleRefused, match="nested too deeply"):
        open_bundle(sign(text, private_key(PRIVATE)), PUBLIC, ORG)


# ---------------------------------------------------------------------------------------------- installing


def test_an_install_writes_private_files_and_says_what_it_installed(tmp_path: Path) -> None:
    done = install(tmp_path, payload(policies=[{"matcher_type": "mood", "action": "halt", "name": "Odd"}]))
    assert (done.changed, done.bundle.version) == (True, 7)
    assert done.problems == ("policy Odd: unknown matcher type 'mood'",)
    for name in ("bundle.json", "bundle.index", "trust.json", "installed.json"):
        assert (tmp_path / "gate" / name).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "gate").stat().st_mode & 0o777 == 0o700
    assert verify_installed(str(tmp_path)).payload == done.bundle.payload


def test_the_same_version_with_the_same_bytes_is_a_success(tmp_path: Path) -> None:
    install(tmp_path, payload())
    before = (tmp_path / "gate" / "bundle.index").stat().st_mtime_ns
    again = install_bundle(str(tmp_path), envelope(payload()))
    assert not again.changed
    assert (tmp_path / "gate" / "bundle.index").stat().st_mtime_ns == before, "nothing had to be compiled"


def test_a_higher_version_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    install(tmp_path, payload())
    assert install_bundle(str(tmp_path), envelope(payload(version=8))).changed
    assert read_installed(str(tmp_path)) == Installed(ORG, 8, verify_installed(str(tmp_path)).sha256)


def test_an_issued_at_within_a_day_is_fine(tmp_path: Path) -> None:
    now = time.time()
    trust(tmp_path)
    install_bundle(str(tmp_path), envelope(payload(issued_at=now + 86000)), now=now)


def test_without_a_pinned_key_nothing_is_installed(tmp_path: Path) -> None:
    (tmp_path / "gate").mkdir()
    with pytest.raises(BundleError, match="gstack login"):
        install_bundle(str(tmp_path), envelope(payload()))
    assert not (tmp_path / "gate" / "bundle.json").exists()


def test_a_state_folder_that_is_a_file_is_one_clear_error(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.write_text("")
    with pytest.raises(StateError):
        install_bundle(str(root), envelope(payload()), wait=0.1)


def test_another_installation_that_hangs_is_an_error(tmp_path: Path) -> None:
    from gstack.state import Lock

    install(tmp_path, payload())
    with Lock(str(tmp_path / "gate" / "bundle.lock")), pytest.raises(StateError, match="stayed locked"):
        install_bundle(str(tmp_path), envelope(payload(version=8)), wait=0.05)
    assert verify_installed(str(tmp_path)).version == 7


def test_an_index_that_cannot_be_written_does_not_fail_the_install(tmp_path: Path) -> None:
    trust(tmp_path)
    (tmp_path / "gate" / "bundle.index").mkdir()
    assert install_bundle(str(tmp_path), envelope(payload())).bundle.version == 7


def test_the_rules_of_succession() -> None:
    new = open_bundle(envelope(payload(version=8)), PUBLIC, ORG)
    now = time.time()
    check_successor(None, new, now, ORG)
    check_successor(Installed(ORG, 7, "x"), new, now, ORG)
    check_successor(Installed(ORG, 8, new.sha256), new, now, ORG)
    check_successor(Installed("former", 99, "x"), new, now, ORG)
    for old, org, cause in (
        (Installed(ORG, 9, "x"), ORG, "rollback"),
        (Installed(ORG, 8, "x"), ORG, "conflict"),
        (None, "other", "org"),
    ):
        with pytest.raises(BundleRefused) as refused:
            check_successor(old, new, now, org)
        assert refused.value.cause == cause


# ------------------------------------------------------------------------------------- pinning, rotation


def test_pinning_and_pinning_again(tmp_path: Path) -> None:
    root = str(tmp_path)
    first = pin(root, org=ORG, base_url=BASE, key=PUBLIC, how="first use", now=1.0)
    assert pin(root, org=ORG, base_url=BASE, key=PUBLIC, how="first use", now=2.0) == first
    with pytest.raises(BundleRefused, match="the key changed") as refused:
        pin(root, org=ORG, base_url=BASE, key=OTHER_PUBLIC, how="first use", now=3.0)
    assert refused.value.cause == "key"
    assert read_trust(root) == first
    by_hand = pin(root, org=ORG, base_url=BASE, key=OTHER_PUBLIC, how="by hand", now=4.0, replace=True)
    assert read_trust(root) == by_hand


def test_another_organisation_starts_without_what_came_from_the_former_one(tmp_path: Path) -> None:
    install(tmp_path, payload())
    pin(str(tmp_path), org="other", base_url=BASE, key=PUBLIC, how="first use", now=1.0)
    assert not (tmp_path / "gate" / "bundle.json").exists()
    assert read_installed(str(tmp_path)) is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"org": "acme"}', '{"org": "a", "base_url": "", "key": "x", "how": "", "pinned_at": 1}']
)
def test_a_broken_pin_trusts_nothing(tmp_path: Path, text: str) -> None:
    install(tmp_path, payload())
    (tmp_path / "gate" / "trust.json").write_text(text)
    with pytest.raises(BundleError, match="gstack login"):
        read_trust(str(tmp_path))


def test_forgetting_leaves_nothing_of_the_bundle(tmp_path: Path) -> None:
    install(tmp_path, payload())
    forget(str(tmp_path))
    assert {path.name for path in (tmp_path / "gate").iterdir()} <= {"bundle.lock"}


def test_a_new_key_that_the_old_one_announced_is_followed_and_pinned(tmp_path: Path) -> None:
    install(tmp_path, payload())
    statement = rotation(ORG, private_key(PRIVATE), OTHER_PUBLIC, time.time())
    done = install_bundle(str(tmp_path), envelope(payload(version=8), OTHER_PRIVATE, rotations=[statement]))
    assert done.bundle.key == OTHER_PUBLIC
    found = read_trust(str(tmp_path))
    assert found is not None
    assert (found.key, found.how) == (OTHER_PUBLIC, "rotation")
    install_bundle(str(tmp_path), envelope(payload(version=9), OTHER_PRIVATE))


def test_a_machine_that_slept_through_two_rotations_follows_the_chain() -> None:
    third_private, third = new_keys()
    chain = [
        rotation(ORG, private_key(PRIVATE), OTHER_PUBLIC, 1.0),
        rotation(ORG, private_key(OTHER_PRIVATE), third, 2.0),
    ]
    made = envelope(payload(), third_private, rotations=chain)
    assert open_bundle(made, PUBLIC, ORG).key == third
    assert open_bundle(made, OTHER_PUBLIC, ORG).key == third
    assert open_bundle(made, third, ORG).key == third
