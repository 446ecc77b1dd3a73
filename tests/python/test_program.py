"""The package: programs, their errors with the author's line, finding the library."""

import os
import subprocess
import sys
import unittest

import polyccl


def line():
    """The number of the line that calls this."""
    return sys._getframe(1).f_lineno


def ring(ranks, skip=0, **options):
    program = polyccl.Program("allreduce", ranks, ranks, inplace=True, **options)
    for index in range(ranks):
        at = program.chunk((index + 1) % ranks, "input", index)
        for step in range(2, ranks + 1 - skip):
            at = program.chunk((index + step) % ranks, "input", index).reduce(at)
        for step in range(1, ranks):
            at = at.copy((at.rank + 1) % ranks)
    return program


class Fails(unittest.TestCase):
    def fails(self, message, call, *arguments, **options):
        with self.assertRaises(polyccl.Error) as caught:
            call(*arguments, **options)
        self.assertIn(message, str(caught.exception))
        return caught.exception


class Building(Fails):
    def test_a_ring_is_right(self):
        for ranks in (1, 2, 5):
            summary = ring(ranks).check()
            self.assertEqual(summary.operations, 2 * ranks * (ranks - 1))
            self.assertEqual(summary.longest, 2 * (ranks - 1))
            self.assertTrue(summary.identical)

    def test_what_lacks_is_named(self):
        error = self.fails("rank 0 output[0]: lacks rank 0 chunk 0", ring(3, skip=1).check)
        self.assertEqual(error.kind, "invalid")
        self.assertIn("test_program.py:", str(error))

    def test_references_tell_their_place(self):
        program = polyccl.Program("alltoall", 3, 2)
        at = program.chunk(1, "input", 2, 4)
        self.assertEqual((at.rank, at.buffer, at.index, at.size), (1, "input", 2, 4))
        to = at.copy(2, "tmp")
        self.assertEqual((to.rank, to.buffer, to.index, to.size), (2, "tmp", 0, 4))
        more = at.copy(2, "tmp")
        self.assertEqual(more.index, 4)
        self.assertEqual(at.copy(0).index, 2)
        self.assertEqual([(part.index, part.size) for part in to.split(2)], [(0, 2), (2, 2)])
        whole = more.group(to)
        self.assertEqual((whole.index, whole.size), (0, 8))
        self.assertEqual(repr(whole), "Ref(rank=2, buffer='tmp', index=0, size=8)")

    def test_errors_carry_the_line_of_the_author(self):
        program = polyccl.Program("allreduce", 2, 2, inplace=True)
        old, at = program.chunk(0, "input", 0), program.chunk(1, "input", 0)
        at.copy(0, "output", 0); written = line()
        here = f"test_program.py:{line() + 1}: stale chunk: rank 0 input[0] was overwritten at "
        error = self.fails(here, lambda: old.copy(1))
        self.assertIn(f"test_program.py:{written} after", str(error))
        self.fails(f"{__file__}:{line()}: rank 9 is out of range", lambda: program.chunk(9, "input"))
        self.fails(f"{__file__}:{line()}: rank 0 tmp[0] is out of range (0 chunks", lambda: program.chunk(0, "tmp"))
        self.fails("cannot be reduced with itself", at.reduce, at)

    def test_misuse_is_an_error(self):
        program = polyccl.Program("allreduce", 2, 4)
        at = program.chunk(0, "input", 0, 4)
        for message, call in (
            ("rank must be a whole number, not 'x'", lambda: program.chunk("x", "input")),
            ("rank must be a whole number, not 1.0", lambda: at.copy(1.0)),
            ("rank = 4294967296 is out of range", lambda: at.copy(2**32)),
            ("index -1 is negative", lambda: at.copy(1, "output", -1)),
            ("not 7", lambda: program.chunk(0, 7)),
            ("holds nothing yet", lambda: program.chunk(0, "output")),
            ("takes a reference to chunks, not None", lambda: at.reduce(None)),
            ("of another program", lambda: at.reduce(polyccl.Program("allreduce", 2, 4).chunk(1, "input", 0, 4))),
            ("4 chunks cannot be split in 3", lambda: at.split(3)),
            ("4 chunks cannot be split in 0", lambda: at.split(0)),
            ("takes a reference of the same program", lambda: at.group(3)),
            ("chunks = 0 is out of range", lambda: polyccl.Program("allreduce", 2, 0)),
            (f"{__file__}:{line()}: unknown collective", lambda: polyccl.Program("allsend", 2, 1)),
            (f"{__file__}:{line()}: unknown protocol", lambda: polyccl.Program("allreduce", 2, 1, protocol="fast")),
            ("bytes must be a pair of sizes (min, max)", lambda: polyccl.Program("allreduce", 2, 1, bytes=7)),
            ("bytes (-1, 0) are out of range", lambda: polyccl.Program("allreduce", 2, 1, bytes=(-1, 0))),
            ("minbytes 9 is above maxbytes 8", lambda: polyccl.Program("allreduce", 2, 1, bytes=(9, 8))),
            ("unknown replication", lambda: polyccl.Program("allreduce", 2, 1, replication="odd")),
            ("only a custom collective", lambda: program.post(0, 0, [(0, 0)])),
        ):
            with self.subTest(message=message):
                self.fails(message, call)
        with self.subTest("nothing of this was taken for an operation"):
            self.fails("rank 0 output[0]", program.check)

    def test_chunks_know_whence_and_whither(self):
        program = polyccl.Program("alltoall", 3, 2)
        at = program.chunk(1, "input", 4, 2).copy(0, "tmp")
        self.assertEqual((at.origins(1), at.destinations(1)), ([(1, 5)], [(2, 3)]))
        program = polyccl.Program("allreduce", 70, 1, inplace=True)
        total = program.chunk(0, "input")
        for rank in range(1, 70):
            total = program.chunk(rank, "input").reduce(total)
        self.assertEqual(total.origins(), [(rank, 0) for rank in range(70)])
        self.assertEqual(total.destinations(), [(rank, 0) for rank in range(70)])
        self.fails(f"{__file__}:{line()}:", lambda: total.origins(1))

    def test_transfers(self):
        def program(lacking):
            made = polyccl.Program("allreduce", 3, 3, inplace=True)
            for index in range(3):
                for step in range(4 - lacking):
                    src = (index + step) % 3
                    made.transfer(src, (src + 1) % 3, step, index, reduce=step < 2)
            return made
        self.assertEqual(program(0).check().remote, 12)
        self.assertEqual(len(program(0).compile()), 15)
        self.fails("lacks rank", program(1).check)
        self.fails(f"{__file__}:{line()}: ", lambda: program(0).transfer(0, 7, 0, 0))

    def test_a_topology_has_its_say(self):
        program = polyccl.Program("broadcast", 4, 1, inplace=True, topology="ring:4")
        at = program.chunk(0, "input")
        self.fails(f"{__file__}:{line()}:", lambda: at.copy(2))
        at.copy(1).copy(2)
        at.copy(3)
        self.assertEqual(program.check().remote, 3)
        plan = program.compile(policy="state")
        self.assertIn("order task-major", plan.text())
        plan.verify()
        self.assertNotEqual(program.compile(instances=3).text(), program.compile().text())
        self.assertIn("order task-major", program.compile(policy="state", topology="dgx-a100", max_tbs=2).text())
        self.fails("policy state needs a topology", polyccl.Program("broadcast", 1, 1, inplace=True).compile,
                   policy="state")
        self.fails("unknown policy 'odd' (known: connection, state)", program.compile, policy="odd")
        self.fails(f"{__file__}:{line()}: ", lambda: polyccl.Topology("no such machine"))
        machine = polyccl.Topology("ring:4")
        self.assertEqual([machine.linked(0, rank) for rank in (1, 2, 3, 9)], [True, False, True, False])

    def test_parallelize_is_a_scope(self):
        program = polyccl.Program("allgather", 2, 2)
        with program.parallelize(2):
            for rank in range(2):
                program.chunk(rank, "input", 0, 2).copy(1 - rank, "output", 2 * rank)
        for rank in range(2):
            program.chunk(rank, "input", 0, 2).copy(rank, "output", 2 * rank)
        self.assertEqual(program.check().operations, 4)
        self.fails(f"{__file__}:{line()}: parallelize by 0", lambda: program.parallelize(0).__enter__())

    def test_custom_conditions(self):
        def program(*leaves):
            made = polyccl.Program("custom", 3, 1)
            made.pre(2, 0, False)
            made.post(2, 0, leaves)
            made.chunk(1, "input").copy(2, "output")
            return made
        self.assertEqual(program((1, 0)).check().remote, 1)
        self.fails("rank 2 output[0]: has rank 1 chunk 0, lacks rank 0 chunk 0", program((0, 0)).check)
        self.fails("rank 2 input[0] holds nothing yet", program((1, 0)).chunk, 2, "input")


class Library(Fails):
    def run_python(self, code, **environment):
        return subprocess.run([sys.executable, "-c", code], env={**os.environ, **environment}, text=True,
                              capture_output=True)

    def test_a_missing_library_is_one_clear_error(self):
        code = "import polyccl\ntry: polyccl.Program('allreduce', 2, 1)\nexcept polyccl.Error as e: print(e.kind, e)"
        ran = self.run_python(code, POLYCCL_LIBRARY="/no/such/libpolyccl.so")
        self.assertIn("system cannot load libpolyccl.so", ran.stdout)
        self.assertIn("/no/such/libpolyccl.so", ran.stdout)
        self.assertEqual(ran.returncode, 0, ran.stderr)

    def test_another_library_is_one_clear_error(self):
        code = "import polyccl\ntry: polyccl.Program('allreduce', 2, 1)\nexcept polyccl.Error as e: print(e)"
        ran = self.run_python(code, POLYCCL_LIBRARY="libm.so.6")
        self.assertIn("libm.so.6 lacks polyccl_", ran.stdout)


if __name__ == "__main__":
    unittest.main()
