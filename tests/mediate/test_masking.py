from __future__ import annotations

import time

from sigwrap.text import masked

SECRET = "s3cr3tV4lue"


def test_a_secret_does_not_stay() -> None:
    for argv in (
        ("deploy", "--token", SECRET),
        ("deploy", f"--token={SECRET}"),
        ("deploy", "--api-key", SECRET),
        ("deploy", f"--db-password={SECRET}"),
        ("env", f"GITHUB_TOKEN={SECRET}", "gh"),
        ("env", f"AWS_SECRET_ACCESS_KEY={SECRET}", "aws"),
        ("sh", "-c", f"export API_KEY='{SECRET}'; run"),
        ("curl", "-H", f"Authorization: Bearer {SECRET}"),
        ("curl", "-H", f"authorization: token {SECRET}"),
        ("curl", "-H", f"X-Api-Key: {SECRET}"),
        ("sh", "-c", f'curl -H "Authorization: Basic {SECRET}" x'),
        ("curl", "-u", f"me:{SECRET}"),
        ("/usr/bin/curl", f"-ume:{SECRET}"),
        ("git", "clone", f"https://me:{SECRET}@example.org/x.git"),
        ("git", "clone", f"https://{SECRET}{SECRET}@example.org/x.git"),
        ("psql", f"postgresql://user:{SECRET}@db/x"),
        ("mysql", "-uroot", f"-p{SECRET}"),
        ("sshpass", "-p", SECRET, "ssh", "host"),
        ("echo", f'{{"password": "{SECRET}"}}'),
        ("x", f"ghp_{SECRET}{SECRET}"),
        ("x", f"sk-{SECRET}{SECRET}"),
        ("x", f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\n-----END RSA PRIVATE KEY-----"),
    ):
        assert SECRET not in " ".join(masked(argv))
        assert len(masked(argv)) == len(argv)


def test_the_rest_stays_as_it_is() -> None:
    for argv in (
        (),
        ("",),
        ("ls", "-la"),
        ("git", "commit", "-m", "a token of thanks"),
        ("git", "clone", "https://example.org/x.git"),
        ("python", "-m", "tokenize", "x.py"),
        ("train", "--max-tokens", "100"),
        ("mysql", "-p"),
        ("grep", "-r", "password", "."),
        ("ssh", "-p", "22", "host"),
        ("\udcff", "a\nb"),
    ):
        assert masked(argv) == argv


def test_it_takes_linear_time() -> None:
    def cost_s(text: str, size: int) -> float:
        argv = ("x", text * (size // len(text)), "--" + text * (size // len(text)) + "token")
        started = time.process_time()
        masked(argv)
        return time.process_time() - started

    for text in (
        *("token", "a", "://", "://a:", "token=", "bearer ", "-----BEGIN ", "--api-", "eyJ", " "),
        "a-",
    ):
        assert cost_s(text, 100_000) < 1.0, text
