"""Programs: chunks, copies and reductions on the C builder."""

import os
from collections import namedtuple
from ctypes import POINTER, byref, c_int, c_size_t, c_void_p

from ._library import (CompileOptions, Error, Hints, Leaf, PlanData, ProgramConfig, ProgramSummary, RefData, check,
                       library)
from ._place import at, location
from .plan import Plan

INPUT, OUTPUT = "input", "output"
_PLACEMENTS = {None: 0, True: 1, False: 2}
_POLICIES = {"connection": 0, "state": 1}
_SCHEDULES = {"hpds": 0, "round-robin": 1, "best": 2}

Summary = namedtuple("Summary", "ranks chunks operations remote longest identical")
Summary.__doc__ = """What the symbolic check found: ranks, chunks of a block as written, operations, those between
ranks, the longest chain of dependencies, whether all ranks get the same bits."""


def _number(value, what):
    """The integer in `value`. Raises Error if it is not a whole number or does not fit C's int."""
    try:
        number = value.__index__()
    except AttributeError:
        raise Error(at(f"{what} must be a whole number, not {value!r}")) from None
    if not -2**31 <= number < 2**31:
        raise Error(at(f"{what} = {number} is out of range"))
    return number


def _sizes(pair):
    """The two sizes of a pair (min, max), which are at least 0."""
    try:
        min_bytes, max_bytes = (number.__index__() for number in pair)
    except (AttributeError, TypeError, ValueError):
        raise Error(at(f"bytes must be a pair of sizes (min, max), not {pair!r}")) from None
    if min_bytes < 0 or max_bytes < 0 or max(min_bytes, max_bytes) >= 2**63:
        raise Error(at(f"bytes {pair!r} are out of range"))
    return min_bytes, max_bytes


def _parse_name(parse, name):
    if not isinstance(name, str):
        raise Error(at(f"expected a name, not {name!r}"))
    value = c_int()
    _check_here(parse(name.encode("utf-8"), byref(value)))
    return value.value


def _look_up(table, name, what):
    if name not in table:
        raise Error(at(f"unknown {what} {name!r} (known: {', '.join(map(str, table))})"))
    return table[name]


class Topology:
    """A machine, given by a file or by the name of a shipped one ("dgx-a100"; see `polyccl topology --list`)."""

    def __init__(self, name):
        self._topology = None
        topology = c_void_p()
        _check_here(library.topology_open(os.fsencode(name), byref(topology)))
        self._topology, self.name = topology, str(name)

    def __del__(self):
        if getattr(self, "_topology", None):
            library.topology_destroy(self._topology)
            self._topology = None

    def linked(self, src, dst):
        """Whether rank `src` can send to rank `dst` directly."""
        return library.topology_linked(self._topology, _number(src, "src"), _number(dst, "dst"))


class Ref:
    """A reference to `size` consecutive chunks as they were when the reference was made.

    A reference is stale, and using it is an error, once one of the chunks has been overwritten. References are values:
    copy() and reduce() return new ones.
    """

    __slots__ = ("program", "buffer", "data")

    def __init__(self, program, buffer, data):
        self.program, self.buffer, self.data = program, buffer, data

    @property
    def rank(self):
        return self.data.rank

    @property
    def index(self):
        return self.data.index

    @property
    def size(self):
        return self.data.size

    def copy(self, rank, buffer=None, index=None, *, channel=-1, send_tb=-1, recv_tb=-1):
        """Copies these chunks to `rank`; returns a reference to the copy. Without a buffer, the copy goes to the same
        buffer and index. Without an index, it goes to the same index, in scratch to the end of the buffer."""
        program, data = self.program, RefData()
        number = -1 if buffer is None else program._buffer(buffer)
        target = -1 if index is None else _number(index, "index")
        if index is not None and target < 0:
            raise Error(at(f"index {target} is negative"))
        if buffer is None and index is not None:
            number = self.data.buffer
        check(library.program_copy(program._program, byref(self.data), _number(rank, "rank"), number, target,
                                   _hints(channel, send_tb, recv_tb), location(), byref(data)))
        return Ref(program, self.buffer if buffer is None else buffer, data)

    def reduce(self, operand, *, channel=-1, send_tb=-1, recv_tb=-1):
        """Adds `operand` to these chunks, in their place. Returns a reference to the sum; self is stale afterwards."""
        if not isinstance(operand, Ref):
            raise Error(at(f"reduce() takes a reference to chunks, not {operand!r}"))
        if operand.program is not self.program:
            raise Error(at("reduce() of a chunk of another program"))
        program, data = self.program, RefData()
        check(library.program_reduce(program._program, byref(self.data), byref(operand.data),
                                     _hints(channel, send_tb, recv_tb), location(), byref(data)))
        return Ref(program, self.buffer, data)

    def split(self, parts):
        """Returns `parts` references of equal size, in order."""
        parts = _number(parts, "parts")
        if parts < 1 or self.size % parts != 0:
            raise Error(at(f"{self.size} chunks cannot be split in {parts} equal parts"))
        size, data = self.size // parts, self.data
        return [Ref(self.program, self.buffer,
                    RefData(data.rank, data.buffer, data.index + i * size, size, data.stamp)) for i in range(parts)]

    def group(self, other):
        """Returns one reference from the lower of the two to the end of the higher. Both lie in one buffer."""
        if not isinstance(other, Ref) or other.program is not self.program:
            raise Error(at(f"group() takes a reference of the same program, not {other!r}"))
        data = RefData()
        check(library.program_group(self.program._program, byref(self.data), byref(other.data), location(),
                                    byref(data)))
        return Ref(self.program, self.buffer, data)

    def origins(self, index=0):
        """Returns the input chunks that chunk `index` of the reference consists of, as sorted pairs (rank, chunk)."""
        return self._pairs(library.program_origins, index)

    def destinations(self, index=0):
        """Returns the output chunks for which the collective wants that chunk, as sorted pairs (rank, chunk)."""
        return self._pairs(library.program_destinations, index)

    def _pairs(self, ask, index):
        index, count, capacity = _number(index, "index"), c_size_t(), 64
        while True:
            found = (Leaf * capacity)()
            check(ask(self.program._program, byref(self.data), index, location(), found, capacity, byref(count)))
            if count.value <= capacity:
                return [(leaf.rank, leaf.chunk) for leaf in found[:count.value]]
            capacity = count.value

    def __repr__(self):
        return f"Ref(rank={self.rank}, buffer={self.buffer!r}, index={self.index}, size={self.size})"


class _Parallel:
    """The scope of Program.parallelize()."""

    def __init__(self, program, instances):
        self._target, self._instances = program, _number(instances, "instances")

    def __enter__(self):
        check(library.program_parallel_begin(self._target._program, self._instances, location()))
        return self._target

    def __exit__(self, kind, value, trace):
        check(library.program_parallel_end(self._target._program))


def _hints(channel, send_tb, recv_tb):
    return Hints(_number(channel, "channel"), _number(send_tb, "send_tb"), _number(recv_tb, "recv_tb"))


class Program:
    """A program for one collective, built by chunk(), Ref.copy() and Ref.reduce().

    collective: "allreduce", "allgather", "reduce_scatter", "alltoall", "broadcast", "reduce", "gather", "scatter",
    "sendrecv" or "custom". chunks: per block, as in program.h. replication: "interleaved" or "batched" (of instances).
    manual: each operation names its thread blocks and its channel. bytes: the (min, max) size of the larger
    buffer that the program is meant for; max 0 means no limit. topology: a machine's name or file; operations
    between ranks that it does not link are errors.
    """

    def __init__(self, collective, ranks, chunks, *, name=None, chunks_out=0, inplace=False, root=0, peer=0,
                 protocol="Simple", instances=1, replication="interleaved", bytes=(0, 0), manual=False, fusion=True,
                 topology=None):
        self._program = None
        if replication not in ("interleaved", "batched"):
            raise Error(at(f"unknown replication {replication!r} (known: interleaved, batched)"))
        min_bytes, max_bytes = _sizes(bytes)
        config = ProgramConfig(
            name=None if name is None else str(name).encode("utf-8"),
            collective=_parse_name(library.collective_parse, collective),
            ranks=_number(ranks, "ranks"),
            chunks=_number(chunks, "chunks"),
            chunks_out=_number(chunks_out, "chunks_out"),
            inplace=bool(inplace),
            root=_number(root, "root"),
            peer=_number(peer, "peer"),
            protocol=_parse_name(library.protocol_parse, protocol),
            instances=_number(instances, "instances"),
            replication=int(replication == "batched"),
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            manual=bool(manual),
            no_fusion=not fusion)
        program = c_void_p()
        _check_here(library.program_create(byref(config), byref(program)))
        self._program, self._scratch, self.topology = program, {}, topology
        self._open = False  # it has transfers that are not operations yet
        if topology is not None:
            _check_here(library.program_set_topology(program, os.fsencode(topology)))
        self.collective, self.ranks, self.chunks, self.inplace = collective, ranks, chunks, bool(inplace)

    def __del__(self):
        if getattr(self, "_program", None):
            library.program_destroy(self._program)
            self._program = None

    def _buffer(self, buffer):
        """The builder's number of "input", "output" or a named scratch buffer."""
        if buffer == INPUT:
            return 0
        if buffer == OUTPUT:
            return 1
        number = self._scratch.get(buffer)
        if number is None:
            if not isinstance(buffer, str) or not buffer:
                raise Error(at(f"a buffer is \"input\", \"output\" or the name of a scratch buffer, not {buffer!r}"))
            value = c_int()
            _check_here(library.program_scratch(self._program, buffer.encode("utf-8"), byref(value)))
            number = self._scratch[buffer] = value.value
        return number

    def chunk(self, rank, buffer, index=0, size=1):
        """Returns a reference to `size` chunks from `index` on."""
        data = RefData()
        check(library.program_chunk(self._program, _number(rank, "rank"), self._buffer(buffer), _number(index, "index"),
                                    _number(size, "size"), location(), byref(data)))
        return Ref(self, buffer, data)

    def parallelize(self, instances):
        """`with program.parallelize(4):` runs the operations inside as 4 instances on parts of the chunks."""
        return _Parallel(self, instances)

    def transfer(self, src, dst, step, chunk, reduce=False):
        """Adds a transfer: chunk `chunk` of `src` goes to the same place on `dst`, which stores it or adds it to
        its own. The numbers of the steps give the order. The program must be in place and cannot use chunk()."""
        check(library.program_transfer(self._program, _number(src, "src"), _number(dst, "dst"), _number(step, "step"),
                                       _number(chunk, "chunk"), bool(reduce), location()))
        self._open = True

    def _finish(self):
        """Makes operations of the transfers, once, at the end."""
        if self._open:
            check(library.program_finish(self._program))
            self._open = False

    def pre(self, rank, chunk, held):
        """Custom collectives: says whether input chunk `chunk` of `rank` holds data at the start (default: True)."""
        _check_here(library.program_pre(self._program, _number(rank, "rank"), _number(chunk, "chunk"), bool(held)))

    def post(self, rank, chunk, leaves):
        """Custom collectives: says that output chunk `chunk` of `rank` must hold the reduction of `leaves`, which are
        pairs (rank, input chunk)."""
        pairs = [(_number(r, "rank"), _number(c, "chunk")) for r, c in leaves]
        array = (Leaf * len(pairs))(*pairs)
        _check_here(library.program_post(self._program, _number(rank, "rank"), _number(chunk, "chunk"), array,
                                         len(pairs)))

    def check(self):
        """Proves that every output chunk holds exactly its contributions. Raises Error for the first that does not."""
        self._finish()
        summary = ProgramSummary()
        check(library.program_check(self._program, byref(summary)))
        return Summary(*(getattr(summary, name) for name in Summary._fields))

    def compile(self, *, inplace=None, verify=True, policy="connection", topology=None, schedule="hpds", max_tbs=0,
                bytes=0, seconds=0, instances=0):
        """Compiles the program and returns the plan. inplace True or False replaces the program's own placement.

        policy is "connection" (MSCCLang's) or "state" (ResCCL's). "state" needs a topology (a name, a file or a
        Topology; by default the program's) and takes these options: schedule "hpds", "round-robin" or "best" (for `bytes`,
        found in `seconds`), and max_tbs, the maximum of thread blocks on a rank. instances replaces the program's own number
        of copies, each of which works on its part of the data.
        """
        self._finish()
        topology = self.topology if topology is None else topology
        if topology is not None and not isinstance(topology, Topology):
            topology = Topology(topology)
        options = CompileOptions(
            placement=_look_up(_PLACEMENTS, inplace, "placement"),
            policy=_look_up(_POLICIES, policy, "policy"),
            schedule=_look_up(_SCHEDULES, schedule, "schedule"),
            topology=topology._topology if topology is not None else None,
            max_tbs=_number(max_tbs, "max_tbs"),
            bytes=_number(bytes, "bytes"),
            seconds=float(seconds),
            instances=_number(instances, "instances"),
            no_verify=not verify)
        plan = POINTER(PlanData)()
        check(library.compile(self._program, byref(options), byref(plan)))
        return Plan(plan)


def _check_here(result):
    """check() for functions that take no place: puts the author's place in front of the message."""
    try:
        check(result)
    except Error as error:
        raise Error(at(str(error)), error.kind) from None
