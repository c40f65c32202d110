"""By the C library: it asks for both kinds of addresses at once."""

import concurrent.futures
import json
import socket


def found(name: str, *further: int) -> object:
    try:
        return sorted({each[4][0] for each in socket.getaddrinfo(name, 80, *further)})
    except OSError as refusal:
        return refusal.strerror


with concurrent.futures.ThreadPoolExecutor(8) as pool:
    many = list(pool.map(found, ["named.test", "other.test"] * 20))
print(
    json.dumps(
        {
            "both": found("named.test"),
            "one": found("named.test", socket.AF_INET),
            "by a connection": found("large.test"),
            "none": found("nobody.test"),
            "many at once": many,
        }
    )
)
