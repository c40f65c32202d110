"""Whom https believes. Everything is read at the start: OpenSSL itself would look into a folder of
certificates at each handshake, which may be one that COMMAND can write."""

from __future__ import annotations

import contextlib
import os
import re
import ssl
from collections.abc import Mapping

from sigwrap.errors import SessionError
from sigwrap.escape import printable

# Where OpenSSL was built for another distribution (the one-file binary), its own is not there.
_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Alpine
    "/etc/pki/tls/certs/ca-bundle.crt",  # RHEL
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",  # SUSE
    "/var/lib/ca-certificates/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
_CERTIFICATE = re.compile("-----BEGIN CERTIFICATE-----\n[^-]*-----END CERTIFICATE-----\n")
_LARGEST = 1 << 24


def verifying_context(environment: Mapping[bytes, bytes]) -> ssl.SSLContext:
    """Raises SessionError where there is nobody to believe."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # which verifies chain and name
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    file = os.fsdecode(environment.get(b"SSL_CERT_FILE", b""))
    folders = os.fsdecode(environment.get(b"SSL_CERT_DIR", b""))
    if file:
        _load(context, file, "$SSL_CERT_FILE")
    if folders:
        _load_folders(context, folders.split(":"), but=file)
    if not file and not folders:
        usual = ssl.get_default_verify_paths()
        for each in (usual.openssl_cafile, *_BUNDLES):
            if os.path.exists(each):
                _load(context, each, "the certificates of this machine")
                break
        else:
            _load_folders(context, [usual.openssl_capath])
    if not context.cert_store_stats()["x509_ca"]:
        raise SessionError(
            "cannot verify the remote kill switch: no CA certificates found",
            "install ca-certificates, or set $SSL_CERT_FILE",
        )
    return context


def _load(context: ssl.SSLContext, file: str, what: str) -> None:
    try:
        context.load_verify_locations(cafile=file)
    except ssl.SSLError as failure:
        why = "no PEM certificates in it"
        raise _unusable(file, what, why) from failure
    except OSError as failure:
        raise _unusable(file, what, failure.strerror or "unreadable") from failure


def _unusable(file: str, what: str, why: str) -> SessionError:
    return SessionError(
        f"{what}: {printable(file)}: {why}", "sigwrap needs them to verify the remote kill switch"
    )


def _load_folders(context: ssl.SSLContext, folders: list[str], but: str = "") -> None:
    """Each certificate once: there are links to most, and a file that has all of them."""
    known = set(_certificates_in(but)) if but else set()
    for folder in folders:
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            continue
        files = {os.path.realpath(os.path.join(folder, name)) for name in names}
        for certificate in (each for file in files for each in _certificates_in(file)):
            if certificate not in known:
                known.add(certificate)
                with contextlib.suppress(ssl.SSLError):  # such a folder may hold anything
                    context.load_verify_locations(cadata=certificate)


def _certificates_in(file: str) -> list[str]:
    try:
        if not os.path.isfile(file):
            return []
        with open(file, encoding="ascii", errors="replace") as opened:
            return _CERTIFICATE.findall(opened.read(_LARGEST))
    except OSError:
        return []
