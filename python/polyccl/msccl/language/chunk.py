"""What a place in a buffer holds: one chunk of the start, or the sum of several."""


class Chunk:
    """Chunk `origin_index` of rank `origin_rank`'s input, on its way to `dst_index` on `dst_rank` (-1: all ranks)."""

    __slots__ = ("origin_rank", "origin_index", "dst_rank", "dst_index", "leaf")

    def __init__(self, origin_rank, origin_index, dst_rank=-1, dst_index=-1):
        self.origin_rank = origin_rank
        self.origin_index = origin_index
        self.dst_rank = dst_rank
        self.dst_index = dst_index
        self.leaf = None  # (rank, input chunk) where it lies at the start; set by the program

    def reduce(self, dst, chunk=None):
        return ReduceChunk(dst, [self]).reduce(dst, chunk)

    def _key(self):
        return self.origin_rank, self.origin_index

    def __eq__(self, other):
        return isinstance(other, Chunk) and self._key() == other._key()

    def __lt__(self, other):
        return self._key() < other._key()

    def __hash__(self):
        return hash(self._key())

    def __repr__(self):
        return (f"Chunk(origin_rank={self.origin_rank}, origin_index={self.origin_index}, dst_rank={self.dst_rank}, "
                f"dst_index={self.dst_index})")


class ReduceChunk:
    """A sum. Kept as a tree, so that a reduction costs the same however much was summed before.

    ReduceChunk(rank, chunks) and reduce(rank, chunk); the older forms, without the rank, work too.
    """

    __slots__ = ("creation_rank", "_parts", "_flat")

    def __init__(self, creation_rank, chunks=None):
        if isinstance(creation_rank, list):
            creation_rank, chunks = -1, creation_rank
        self.creation_rank = creation_rank
        self._parts = None
        self._flat = chunks

    @property
    def chunks(self):
        """The chunks that were summed."""
        if self._flat is None:
            flat, stack = [], list(reversed(self._parts))
            while stack:
                part = stack.pop()
                if not isinstance(part, ReduceChunk):
                    flat.append(part)
                elif part._flat is not None:
                    flat.extend(part._flat)
                else:
                    stack.extend(reversed(part._parts))
            self._flat, self._parts = flat, None
        return self._flat

    def reduce(self, dst, chunk=None):
        chunk = dst if chunk is None else chunk
        if not isinstance(chunk, (Chunk, ReduceChunk)):
            raise TypeError(f"cannot reduce with {chunk!r}")
        result = ReduceChunk(self.creation_rank, None)
        result._parts = (self, chunk)
        return result

    def sort(self):
        self.chunks.sort()

    def __eq__(self, other):
        return isinstance(other, ReduceChunk) and sorted(self.chunks) == sorted(other.chunks)

    def __hash__(self):
        return hash(tuple(sorted(self.chunks)))

    def __repr__(self):
        return f"ReduceChunk(creation_rank={self.creation_rank}, chunks={self.chunks!r})"
