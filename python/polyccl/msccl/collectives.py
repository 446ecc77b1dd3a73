"""Older scripts import this beside the language's collectives; the same names serve both."""

from .language.collectives import *
