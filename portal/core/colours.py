"""Colours as hexadecimal sRGB, and their contrast as text (WCAG 2.2, success criterion 1.4.3)."""

from colorsys import hls_to_rgb, rgb_to_hls

# The smallest contrast between text and its background (level AA).
READABLE = 4.5

Rgb = tuple[int, int, int]


def rgb(colour: str) -> Rgb:
    """Return the red, green and blue parts of ``#rrggbb``, each from 0 to 255."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, from 1 to 21."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def lightened(colour: str, *, behind: tuple[str, ...], least: float = READABLE) -> str:
    """Return ``colour``, lightened as little as possible for a contrast of ``least`` with all of ``behind``.

    Lightness rises in steps of 2 %. The last step is white.
    """
    hue, lightness, saturation = rgb_to_hls(*(part / 255 for part in rgb(colour)))
    for percent in range(0, 101, 2):
        parts = hls_to_rgb(hue, lightness + (1 - lightness) * percent / 100, saturation)
        light = "#{:02x}{:02x}{:02x}".format(*(round(part * 255) for part in parts))
        if all(contrast(light, each) >= least for each in behind):
            break
    return light


def _luminance(colour: str) -> float:
    """Return the relative luminance, 0 for black and 1 for white (WCAG 2.2, "relative luminance")."""
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (each / 255 for each in rgb(colour))
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
