"""Suggest the closest word."""

from __future__ import annotations

from collections.abc import Iterable


def nearest_word(word: str, words: Iterable[str]) -> str:
    import difflib  # only after mistakes, so never while the command runs

    by_lowercase = {each.lower(): each for each in words}
    # difflib is quadratic in the word, and no typing error is longer.
    close = difflib.get_close_matches(word[:64].lower(), by_lowercase, n=1, cutoff=0.6)
    return by_lowercase[close[0]] if close else ""


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """Return the start of a hint; empty if no word is close."""
    near = nearest_word(word, words)
    return f'did you mean "{near}"? ' if near else ""
