"""Plans: the compiler's results. They can be printed as text or as MSCCL XML, and verified."""

import os
from collections import namedtuple
from ctypes import POINTER, byref

from ._library import Error, Memory, PlanData, TakeText, VerifyReport, check, library

_FORMATS = {"plan": 0, "xml": 1, "azure": 2, "rccl": 3}

Report = namedtuple("Report", "fifo_depth uneven identical channels max_tbs longest")
Report.__doc__ = """What the verifier found: the minimum FIFO depth without deadlock; whether the plan is right for
counts that the chunks do not divide; whether all ranks get the same bits; the number of channels; the maximum of thread
blocks on a rank; the length of the longest chain of steps."""

Step = namedtuple("Step", "rank tb step op src_buffer src dst_buffer dst count")
Step.__doc__ = "One step: its rank, thread block and number there, and what it does. Offsets and count are in chunks."


class Plan:
    """A plan. Program.compile(), Plan.parse() and Plan.read() make plans."""

    def __init__(self, pointer):
        self._plan = pointer

    def __del__(self):
        if getattr(self, "_plan", None):
            library.plan_destroy(self._plan)
            self._plan = None

    @classmethod
    def parse(cls, text, name="plan"):
        """Reads a plan from text: plan text or either dialect of MSCCL XML. Messages call it `name`."""
        data = text.encode("utf-8") if isinstance(text, str) else bytes(text)
        pointer = POINTER(PlanData)()
        check(library.plan_parse(name.encode("utf-8"), data, len(data), byref(pointer)))
        return cls(pointer)

    @classmethod
    def read(cls, path):
        """Reads a plan from a file."""
        pointer = POINTER(PlanData)()
        check(library.plan_read(os.fsencode(path), byref(pointer)))
        return cls(pointer)

    def _write(self, format):
        if format not in _FORMATS:
            raise Error(f"unknown plan format {format!r} (known: {', '.join(_FORMATS)})")
        memory = Memory()
        try:
            result = library.plan_write(self._plan, _FORMATS[format], memory.file)
        finally:
            text = memory.close()
        check(result)
        return text

    def text(self):
        """The plan in the format of docs/plan.md."""
        return self._write("plan")

    def xml(self, dialect="xml"):
        """The plan as MSCCL XML: dialect "xml" (microsoft/msccl), "azure" (the Azure executor) or "rccl" (RCCL)."""
        return self._write(dialect)

    def caveats(self, dialect="xml"):
        """Returns what users of the XML must know although neither the file nor its executor says it, as sentences."""
        said = []
        library.plan_caveats(self._plan, _FORMATS[dialect], TakeText(lambda _, text: said.append(text.decode())), None)
        return said

    def verify(self):
        """Proves that the plan is right. Raises Error for the first fault."""
        report = VerifyReport()
        check(library.plan_verify(self._plan, byref(report)))
        return Report(*(getattr(report, name) for name in Report._fields))

    @property
    def name(self):
        return (self._plan.contents.name or b"").decode("utf-8", "replace")

    @property
    def collective(self):
        return library.collective_name(self._plan.contents.collective).decode()

    @property
    def protocol(self):
        return library.protocol_name(self._plan.contents.protocol).decode()

    @property
    def ranks(self):
        return self._plan.contents.ranks

    @property
    def chunks(self):
        """Chunks of a block, after replication."""
        return self._plan.contents.chunks

    @property
    def inplace(self):
        return self._plan.contents.inplace

    @property
    def thread_blocks(self):
        """Thread blocks over all ranks."""
        return self._plan.contents.tbs

    @property
    def channels(self):
        """The number of channels: the highest one + 1."""
        plan = self._plan.contents
        return 1 + max((plan.connection[i].channel for i in range(plan.connections)), default=-1)

    def __len__(self):
        """Steps over all ranks."""
        return self._plan.contents.steps

    def steps(self):
        """Iterates over all steps, by rank, thread block and order."""
        plan, rank, local = self._plan.contents, -1, 0
        for tb in range(plan.tbs):
            block = plan.tb[tb]
            local = local + 1 if block.rank == rank else 0
            rank = block.rank
            for number in range(block.steps):
                step = plan.step[block.step + number]
                yield Step(rank, local, number, library.step_op_name(step.op).decode(), "ios"[step.src_buf], step.src,
                           "ios"[step.dst_buf], step.dst, step.count)

    def __repr__(self):
        return (f"<polyccl.Plan {self.name!r}: {self.collective}, {self.ranks} ranks, {len(self)} steps, "
                f"{self.thread_blocks} thread blocks>")
