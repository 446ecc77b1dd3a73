"""Another name for the buffers' module."""

from .buffer import BufferSlice
from .ir import Buffer
