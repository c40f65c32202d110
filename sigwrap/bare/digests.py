from __future__ import annotations

import sys

from sigwrap.bare import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import blake2b as blake2b
    from hashlib import sha256 as sha256
else:
    from _blake2 import blake2b as blake2b

    try:
        from _sha256 import sha256 as _sha256
    except ImportError:  # Python 3.12
        from _sha2 import sha256 as _sha256

    def sha256():
        """Use OpenSSL's, which is several times as fast, if hashlib is imported already."""
        hashlib = sys.modules.get("hashlib")
        return _sha256() if hashlib is None else hashlib.sha256()
