"""Sizes for people."""

from __future__ import annotations

_UNITS = "KMGTPE"


def byte_size(size: int) -> str:
    """Return a size as ls -h does: 812B, 4.2K, 31M."""
    value, unit = float(size), "B"
    for larger in _UNITS:
        if value < 1000:
            break
        value, unit = value / 1024, larger
    digits = f"{value:.1f}" if value < 9.95 and unit != "B" else f"{value:.0f}"
    return digits + unit
