"""The author's place in a program, which is the innermost frame outside this package."""

import os
import sys

from ._library import Location

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_names = {}  # a code's file name -> None for this package's own files, else the name in bytes


def _remember_name(filename):
    inside = os.path.abspath(filename).startswith(_PACKAGE) or filename.startswith("<frozen")
    _names[filename] = None if inside else os.fsencode(filename)
    return _names[filename]


_pinned = None  # the place of an operation that is done again on the author's behalf


def pin(where):
    """Makes place() answer `where` until pin(None)."""
    global _pinned
    _pinned = where


def place():
    """Returns (file in bytes, line) of the author's line that is running, or (None, 0)."""
    if _pinned is not None:
        return _pinned
    frame = sys._getframe(1)
    while frame is not None:
        filename = frame.f_code.co_filename
        name = _names[filename] if filename in _names else _remember_name(filename)
        if name is not None:
            return name, frame.f_lineno
        frame = frame.f_back
    return None, 0


def location():
    return Location(*place())


def at(message):
    """Returns the message with the author's place in front."""
    name, line = place()
    return f"{os.fsdecode(name)}:{line}: {message}" if name is not None else message
