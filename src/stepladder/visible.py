"""Text from outside, shown to a person: what a terminal would obey is written out instead.

At the bottom of the package: the commands, the console logger and log messages pass names, labels,
reasons and error texts through here before they reach a terminal.
"""

import re

_UNSEEN = re.compile(
    # Control characters of ASCII and Latin-1 but tab and newline; marks that turn the direction of
    # text around, join or hide; line separators; lone halves of surrogate pairs.
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def visible(text: object) -> str:
    r"""Return a text in which whatever a terminal would obey or hide is written as an escape.

    Tabs and newlines stay.

    Example:
        >>> print(visible("\x1b[2Jgone\x07"))
        \x1b[2Jgone\x07
    """
    return _UNSEEN.sub(_escaped, str(text))


def one_visible_line(text: object) -> str:
    """Return a text on one line, with everything in it visible."""
    return visible(" ".join(str(text).split()))


def _escaped(match: "re.Match[str]") -> str:
    code = ord(match[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
