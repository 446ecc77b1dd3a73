"""PolyCCL from Python: programs for collective communication, compiled and verified.

    import polyccl

    program = polyccl.Program("allgather", ranks=4, chunks=1)
    for rank in range(4):
        at = program.chunk(rank, "input").copy(rank, "output", rank)
        for hop in range(1, 4):
            at = at.copy((rank + hop) % 4)
    plan = program.compile()
    print(plan.text())

Everything that fails raises polyccl.Error with one line that says what and, in a program, at which line. The package
needs nothing but libpolyccl.so: the one in POLYCCL_LIBRARY, next to the package, in the build tree, or the system's.
`python3 -m polyccl.msccl SCRIPT ARGS` runs MSCCLang scripts. See docs/python.md.
"""

from ._library import Error
from .plan import Plan, Report, Step
from .program import INPUT, OUTPUT, Program, Ref, Summary, Topology

__all__ = ["Error", "INPUT", "OUTPUT", "Plan", "Program", "Ref", "Report", "Step", "Summary", "Topology"]
