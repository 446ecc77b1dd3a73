"""Collectives that a script defines: from their init_buffers() and check() to declared pre- and postconditions."""

import contextlib
import copy
import sys
from collections.abc import Sequence

from ... import Error
from ..._place import at
from .chunk import Chunk, ReduceChunk
from .ir import Buffer


class Layout:
    """The numbers of chunks of input and output, whether both are one memory, and which chunks hold nothing."""

    def __init__(self, collective, buffers):
        name = type(collective).__name__
        if not isinstance(buffers, list) or len(buffers) != collective.num_ranks:
            raise Error(at(f"{name}.init_buffers() must give a list of buffers for each of {collective.num_ranks} "
                           "ranks"))
        pairs = [(held.get(Buffer.input), held.get(Buffer.output)) for held in buffers]
        shared = {one is two or one is None or two is None for one, two in pairs}
        if len(shared) != 1 or (None, None) in pairs:
            raise Error(at(f"{name}.init_buffers(): each rank needs an input and an output buffer, one list for both "
                           "on all ranks or on none"))
        self.inplace = shared.pop()
        if collective.inplace and not self.inplace:
            print(at(f"note: {name} is in place, but init_buffers() gives input and output as two lists: compiled out "
                     "of place"), file=sys.stderr)
        if self.inplace:
            pairs = [(one if one is not None else two,) * 2 for one, two in pairs]
        self.chunks = max(len(one) for one, _ in pairs)
        self.chunks_out = max(len(two) for _, two in pairs)
        self.absent = []
        for rank, (held, output) in enumerate(pairs):
            if not self.inplace and any(chunk is not None for chunk in output):
                raise Error(at(f"{name}.init_buffers(): rank {rank}'s output holds chunks at the start; only input "
                               "may"))
            for index in range(self.chunks):
                if index >= len(held) or held[index] is None:
                    self.absent.append((rank, index))
                else:
                    if not isinstance(held[index], Chunk):
                        raise Error(at(f"{name}.init_buffers(): rank {rank}'s input[{index}] must be a Chunk or None, "
                                       f"not {held[index]!r}"))
                    held[index] = copy.copy(held[index])
                    held[index].leaf = (rank, index)


class _Watched(Sequence):
    """A list that remembers which of its places were looked at."""

    def __init__(self, chunks, seen):
        self._chunks, self._seen = chunks, seen

    def __len__(self):
        return len(self._chunks)

    def __getitem__(self, index):
        places = range(len(self._chunks))[index]
        self._seen.update(places if isinstance(index, slice) else (places,))
        return self._chunks[index]

    def __eq__(self, other):
        return list(self) == list(other)

    def __add__(self, other):
        return list(self) + list(other)


def run_check(program):
    """Returns what the collective's check() returns, and every (rank, index) of output that it looked at.

    The verdict depends on these places alone, so a plan that leaves the same contents there passes the check.
    """
    watched, seen, buffers = [], {}, program.buffers
    for rank, held in enumerate(buffers):
        views = {}
        for buffer, chunks in held.items():
            of_output = buffer is Buffer.output or (buffer is Buffer.input and program.layout.inplace)
            views[buffer] = _Watched(chunks, seen.setdefault(rank, set()) if of_output else set())
        watched.append(views)
    program.buffers = watched
    try:
        with contextlib.redirect_stdout(sys.stderr):  # standard output is for plans
            verdict = program.collective.check(program)
    finally:
        program.buffers = buffers
    return verdict, [(rank, index) for rank, places in seen.items() for index in sorted(places)]


def leaves(chunk):
    """Returns the input chunks that a value consists of."""
    return [part.leaf for part in (chunk.chunks if isinstance(chunk, ReduceChunk) else [chunk])]
