"""MSCCLProgram and the operations of scripts, on the PolyCCL builder."""

import sys
from xml.sax.saxutils import quoteattr

from ... import Error
from ... import Program as Builder
from ..._place import at, pin, place
from .buffer import BufferSlice
from .chunk import ReduceChunk
from .custom import Layout, leaves, run_check
from .ir import Buffer, ReplicationPolicy, ThreadblockPolicy


class Settings:
    """What the runner asks for, and whether a Check() failed."""

    format = "xml"
    verify = True
    compile = {}  # further options of Program.compile()
    failed = False


settings = Settings()
_UNNAMED = 65535  # above every thread block that a script can name
_current = None


def _current_program():
    if _current is None:
        raise Error(at("there is no program here: use `with MSCCLProgram(...):`"))
    return _current


def _builder_name(buffer):
    """The builder's name for a buffer; scratch buffers may have any key."""
    if buffer is Buffer.input:
        return "input"
    if buffer is Buffer.output:
        return "output"
    name = buffer if isinstance(buffer, str) else str(buffer)
    return f"scratch {name}" if name in ("input", "output", "") else name


class Ref:
    """`size` chunks from `index` on of a buffer of a rank. After reduce() it stands for the sum."""

    __slots__ = ("rank", "buffer", "index", "size", "prog", "_ref")

    def __init__(self, prog, buffer, ref):
        self.prog, self.buffer, self._ref = prog, buffer, ref
        self.rank, self.index, self.size = ref.rank, ref.index, ref.size

    def copy(self, dst, buffer=None, index=-1, sendtb=-1, recvtb=-1, ch=-1):
        """Copies these chunks to rank `dst`. Without a buffer, to the same place; without an index, to its end."""
        prog = self.prog
        prog.check_link(self.rank, dst)
        if buffer is None:
            buffer, index = self.buffer, self.index if index == -1 else index
        elif index == -1 and buffer is not Buffer.input and buffer is not Buffer.output:
            index = prog.scratch_length(dst, buffer)
        # Where input lies in output (or output in input), "input" of the receiver means the sender's place in it.
        buffer, index = prog.collective.get_buffer_index(self.rank, buffer, index)
        return prog.copy(self, dst, buffer, index, prog.hints(sendtb, recvtb, ch))

    def reduce(self, other, *args, sendtb=-1, recvtb=-1, ch=-1, **place):
        """Adds `other` to self and returns self. The older form reduce(dst, buffer, index) adds self to that place."""
        if not isinstance(other, Ref):
            return self._reduce_onto(other, *args, sendtb=sendtb, recvtb=recvtb, ch=ch, **place)
        if place or len(args) > 3:
            raise TypeError("reduce(other, sendtb, recvtb, ch)")
        sendtb, recvtb, ch = args + (sendtb, recvtb, ch)[len(args):]
        self.prog.check_link(other.rank, self.rank)
        return self.prog.reduce(self, other, self.prog.hints(sendtb, recvtb, ch))

    def _reduce_onto(self, dst, buffer=None, index=-1, sendtb=-1, recvtb=-1, ch=-1):
        if buffer is None:
            buffer, index = self.buffer, self.index if index == -1 else index
        return self.prog.chunk(dst, buffer, index, self.size).reduce(self, sendtb, recvtb, ch)

    def send(self, dst, buffer=None, index=-1, sendtb=-1, recvtb=-1, ch=-1):
        """The older name of copy()."""
        return self.copy(dst, buffer, index, sendtb, recvtb, ch)

    def split(self, num):
        """Returns `num` references of equal size."""
        return [Ref(self.prog, self.buffer, part) for part in self._ref.split(num)]

    def group(self, other):
        """Returns one reference from the lower of the two to the end of the higher."""
        return Ref(self.prog, self.buffer, self._ref.group(other._ref))

    def _value(self, index):
        return self.prog.buffers[self.rank][self.buffer][self.index + index]

    def _single(self, index):
        value = self._value(index)
        if isinstance(value, ReduceChunk):
            raise Error(at(f"rank {self.rank} index {self.index + index} holds a sum, which has no one origin"))
        return value

    def get_origin_rank(self, index=0):
        return self._single(index).origin_rank

    def get_origin_index(self, index=0):
        return self._single(index).origin_index

    def get_dst_rank(self, index=0):
        return self._single(index).dst_rank

    def get_dst_index(self, index=0):
        return self._single(index).dst_index

    def print_chunk_info(self, index=0):
        print(self._value(index))

    def __eq__(self, other):
        return isinstance(other, Ref) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def _key(self):
        return self.rank, self.buffer, self.index, self.size

    def __repr__(self):
        return f"Ref(rank={self.rank}, buffer={self.buffer}, index={self.index}, size={self.size})"


class MSCCLProgram:
    """A program of one collective on the ranks of `topo`; operations go to the one in a `with` statement."""

    def __init__(self, name, topo, collective, instances, protocol="Simple", threadblock_policy=ThreadblockPolicy.auto,
                 interleaved_replication=True, instr_fusion=True, check_xml=True, dependence_nop=False,
                 dependence_optimization=True, replication_policy=None):
        # check_xml, dependence_nop and dependence_optimization ask for what the compiler always does.
        self.name, self.topo, self.collective = name, topo, collective
        self.num_ranks, self.instances, self.protocol = topo.num_nodes(), instances, protocol
        self.threadblock_policy = ThreadblockPolicy(str(threadblock_policy))
        if replication_policy is None:
            replication_policy = ReplicationPolicy.interleaved if interleaved_replication else ReplicationPolicy.batched
        self.replication_policy = ReplicationPolicy(str(replication_policy))
        self.interleaved_replication = self.replication_policy is ReplicationPolicy.interleaved
        self.instr_fusion = instr_fusion
        if collective.num_ranks != self.num_ranks:
            raise Error(at(f"the collective has {collective.num_ranks} ranks, the topology {self.num_ranks}"))
        self.buffers = collective.init_buffers()
        self._names = {}  # buffer -> the builder's name
        from .collectives import standard_name
        self._standard = standard_name(collective)
        self.layout = None if self._standard else Layout(collective, self.buffers)
        self._log = []  # custom: the operations so far, as postconditions are known only at the end
        self._builder = self._new_builder()

    def _new_builder(self):
        options = dict(name=self.name, protocol=self.protocol, instances=self.instances,
                       replication=str(self.replication_policy), fusion=self.instr_fusion,
                       manual=self.threadblock_policy is ThreadblockPolicy.manual)
        if self._standard:
            return Builder(self._standard, self.num_ranks, self.collective.chunk_factor,
                           inplace=self.collective.inplace, **options)
        builder = Builder("custom", self.num_ranks, self.layout.chunks, chunks_out=self.layout.chunks_out,
                          inplace=self.layout.inplace, **options)
        for rank, index in self.layout.absent:
            builder.pre(rank, index, False)
        return builder

    def __enter__(self):
        global _current
        if _current is not None:
            raise Error(at("there is a program here already"))
        _current = self
        return self

    def __exit__(self, kind, value, trace):
        global _current
        _current = None

    # For references.

    def check_link(self, src, dst):
        for rank in (src, dst):
            if rank not in range(self.num_ranks):
                raise Error(at(f"rank {rank} is out of range (the program has ranks 0 to {self.num_ranks - 1})"))
        if src != dst and not self.topo.link(src, dst):
            raise Error(at(f"no link from rank {src} to rank {dst} in {self.topo.name}"))

    def hints(self, sendtb, recvtb, ch):
        """Thread blocks matter in manual programs only. There, operations that name none share one on each rank."""
        if self.threadblock_policy is not ThreadblockPolicy.manual:
            return {"channel": ch}
        return {"send_tb": _UNNAMED if sendtb == -1 else sendtb, "recv_tb": _UNNAMED if recvtb == -1 else recvtb,
                "channel": ch}

    def scratch_length(self, rank, buffer):
        return len(self.buffers[rank].get(buffer, ()))

    def _name(self, buffer):
        name = self._names.get(buffer)
        if name is None:
            name = _builder_name(buffer)
            while name in self._names.values():
                name += "'"
            self._names[buffer] = name
        return name

    def create_scratch(self, rank, name):
        if name not in self.buffers[rank]:
            self.buffers[rank][name] = BufferSlice(Buffer.scratch, name)
        return self.buffers[rank][name]

    def chunk(self, rank, buffer, index, size):
        if rank in range(self.num_ranks) and buffer not in (Buffer.input, Buffer.output):
            if buffer not in self.buffers[rank]:
                raise Error(at(f"rank {rank} has no buffer {buffer!r} yet"))
        buffer, index = self.collective.get_buffer_index(rank, buffer, index)
        return Ref(self, buffer, self._builder.chunk(rank, self._name(buffer), index, size))

    def copy(self, src, dst, buffer, index, hints):
        ref = src._ref.copy(dst, self._name(buffer), index, **hints)
        if buffer is not Buffer.input and buffer is not Buffer.output:
            self.create_scratch(dst, buffer)
        held, to = self.buffers[src.rank][src.buffer], self.buffers[dst][buffer]
        for i, value in enumerate([held[src.index + i] for i in range(src.size)]):
            to[index + i] = value
        if self._standard is None:
            self._log.append((place(), src._ref, (dst, self._name(buffer), index), hints))
        return Ref(self, buffer, ref)

    def reduce(self, acc, operand, hints):
        ref = acc._ref.reduce(operand._ref, **hints)
        if self._standard is None:
            self._log.append((place(), acc._ref, operand._ref, hints))
        acc._ref = ref
        held, added = self.buffers[acc.rank][acc.buffer], self.buffers[operand.rank][operand.buffer]
        for i in range(acc.size):
            held[acc.index + i] = held[acc.index + i].reduce(acc.rank, added[operand.index + i])
        return acc

    # For scripts.

    def check(self):
        """Returns whether every output chunk is right. Writes to standard error what is wrong."""
        if self._standard is None:
            verdict, _ = run_check(self)
            right = verdict is None or bool(verdict)
            message = at(f"{type(self.collective).__name__}.check() refuses the result")
        else:
            try:
                self._builder.check()
                right = True
            except Error as error:
                right, message = False, str(error)
        if not right:
            settings.failed = True
            print(f"polyccl.msccl: {message}", file=sys.stderr)
        return right

    def _with_postcondition(self):
        """Builds the program of a custom collective again, now with the places that its check() looks at declared."""
        verdict, places = run_check(self)
        if verdict is not None and not verdict and settings.verify:
            raise Error(at(f"{type(self.collective).__name__}.check() refuses the result"))
        builder = self._new_builder()
        output = [held.get(Buffer.output, held.get(Buffer.input)) for held in self.buffers]
        for rank, index in places:
            if output[rank][index] is not None:
                builder.post(rank, index, leaves(output[rank][index]))
        try:
            for where, one, other, hints in self._log:
                pin(where)
                ref = builder.chunk(one.rank, one.buffer, one.index, one.size)
                if isinstance(other, tuple):
                    ref.copy(*other, **hints)
                else:
                    ref.reduce(builder.chunk(other.rank, other.buffer, other.index, other.size), **hints)
        finally:
            pin(None)
        return builder

    def lower(self):
        """Returns the compiled plan."""
        builder = self._builder if self._standard else self._with_postcondition()
        return builder.compile(verify=settings.verify, **settings.compile)

    def generate_xml(self):
        """Returns the plan as text, in the format that the runner asked for."""
        plan = self.lower()
        if settings.format == "plan":
            return plan.text()
        text = plan.xml(settings.format)
        for said in plan.caveats(settings.format):
            print(f"warning: {said}", file=sys.stderr)
        if self._standard is None:  # runtimes choose a plan by its collective's own name
            text = text.replace(' coll="custom"', f" coll={quoteattr(self.collective.name)}", 1)
        return text


def ir_to_xml(plan, **_):
    """Returns the XML of a plan that MSCCLProgram.lower() returned."""
    return plan.xml()


def chunk(rank, buffer, index=0, size=1):
    """Returns a reference to `size` chunks of a buffer of a rank."""
    return _current_program().chunk(rank, buffer, index, size)


def create_scratch(rank, name):
    """Makes scratch buffer `name` on a rank before its first use."""
    return _current_program().create_scratch(rank, name)


def XML():
    """Compiles the program and prints its plan."""
    print(_current_program().generate_xml())


def Check():
    """Returns whether the program does what its collective says."""
    return _current_program().check()
