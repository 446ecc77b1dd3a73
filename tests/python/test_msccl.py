"""`python3 -m polyccl.msccl`: scripts in MSCCLang, unmodified, give plans that verify; mistakes are told by line."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import polyccl

SCRIPTS = pathlib.Path(__file__).parent / "scripts"


def run(script, *args, options=()):
    path = SCRIPTS / script if not os.path.isabs(script) else script
    return subprocess.run([sys.executable, "-m", "polyccl.msccl", *options, str(path), *map(str, args)],
                          capture_output=True, text=True, stdin=subprocess.DEVNULL)


def line_of(script, text):
    """The number of the first line of a script that holds `text`."""
    for number, line in enumerate((SCRIPTS / script).read_text().splitlines(), 1):
        if text in line:
            return number
    raise AssertionError(f"{script} has no line with {text}")


class Scripts(unittest.TestCase):
    def plan(self, script, *args, options=()):
        ran = run(script, *args, options=options)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        plan = polyccl.Plan.parse(ran.stdout)
        plan.verify()
        return plan, ran.stdout

    def test_ring(self):
        plan, text = self.plan("ring.py", 4, "--instances", 2, "--protocol", "LL")
        self.assertEqual((plan.name, plan.collective, plan.protocol, plan.ranks, plan.inplace),
                         ("ring", "allreduce", "LL", 4, True))
        self.assertIn('nchunksperloop="8"', text)
        program = polyccl.Program("allreduce", 4, 4, name="ring", inplace=True, instances=2, protocol="LL")
        for index in range(4):
            at = program.chunk((index + 1) % 4, "input", index)
            for step in range(2, 5):
                at = program.chunk((index + step) % 4, "input", index).reduce(at)
            for step in range(1, 4):
                at = at.copy((at.rank + 1) % 4)
        self.assertEqual(list(program.compile().steps()), list(plan.steps()))

    def test_formats(self):
        self.assertIn(" minBytes=", self.plan("ring.py", 3, options=["--format", "azure"])[1])
        plan, text = self.plan("ring.py", 3, options=["--format", "plan"])
        self.assertTrue(text.startswith("polyccl-plan 1\n"))
        self.assertIn("ring.py", text)  # steps know the author's lines

    def test_policy_state(self):
        _, text = self.plan("ring.py", 4, options=["--policy", "state", "--topology", "dgx-a100", "--format", "plan"])
        self.assertIn("order task-major", text)
        ran = run("ring.py", 4, options=["--policy", "state"])
        self.assertEqual((ran.returncode, ran.stdout), (2, ""))
        self.assertIn("needs a topology", ran.stderr)

    def test_manual_placement_is_the_authors(self):
        for instances in (1, 2):
            plan, _ = self.plan("manual_ring.py", 4, instances)
            self.assertEqual((plan.protocol, plan.thread_blocks, plan.channels, len(plan)),
                             ("LL128", 16 * instances, 4 * instances, 28 * instances))

    def test_manual_operations_without_a_thread_block_share_one(self):
        plan, _ = self.plan("manual_chain.py")
        self.assertEqual([(step.rank, step.tb, step.op) for step in plan.steps()],
                         [(0, 0, "send"), (0, 1, "send"), (1, 0, "rcs"), (1, 1, "recv"), (2, 0, "recv"), (2, 1, "rcs")])

    def test_standard_collectives(self):
        for which, steps in (("allgather", 15), ("allgather_inplace", 12), ("reduce_scatter", 15),
                             ("reduce_scatter_inplace", 12), ("alltoall", None)):
            with self.subTest(which):
                plan, _ = self.plan("inplace.py", which)
                self.assertEqual(plan.collective, which.replace("_inplace", ""))
                self.assertEqual(plan.inplace, which.endswith("_inplace"))
                if steps:
                    self.assertLessEqual(len(plan), steps)

    def test_scratch_groups_and_splits(self):
        plan, _ = self.plan("two_step.py")
        self.assertEqual(plan.collective, "alltoall")
        crossing = [step for step in plan.steps() if step.op == "send" and step.src_buffer == "s"]
        self.assertEqual([step.count for step in crossing], [2] * 4)

    def test_older_names(self):
        plan, _ = self.plan("older.py")
        self.assertEqual(plan.ranks, 4)

    def test_a_collective_of_the_scripts_own(self):
        for way in ("straight", "detour"):
            with self.subTest(way):
                plan, text = self.plan("custom.py", "next", way, options=["--format", "plan"])
                self.assertIn("collective custom", text)
                self.assertIn("absent 3 0", text)
                self.assertIn("post 1 0 = 0.0", text)
                self.assertIn("post 3 1 = 2.1", text)
                self.assertNotIn("post 0", text)
        plan, text = self.plan("custom.py", "sum", 0, options=["--format", "plan"])
        self.assertIn("inplace yes", text)
        self.assertEqual([line.split("=")[0] for line in text.splitlines() if line.startswith("post")],
                         ["post 0 0 ", "post 0 1 "])

    def test_xml_bears_the_collectives_own_name(self):
        ran = run("custom.py", "next", "straight")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn(' coll="to&lt;next&gt;"', ran.stdout)

    def test_in_place_with_two_lists_is_noted(self):
        ran = run("custom.py", "next", "inplace", options=["--format", "plan"])
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("compiled out of place", ran.stderr)
        self.assertIn("inplace no", ran.stdout)

    def test_a_check_that_refuses_is_an_error(self):
        for args, told in ((("next", "lacking"), "rank 3 chunk 0 is wrong: None"), (("sum", 1), "")):
            with self.subTest(args):
                ran = run("custom.py", *args)
                self.assertEqual((ran.returncode, ran.stdout), (2, ""))
                self.assertIn("check() refuses the result", ran.stderr)
                self.assertIn(told, ran.stderr)

    def test_a_wrong_program_is_an_error(self):
        ran = run("ring.py", 3, "--lacking", 1)
        self.assertEqual((ran.returncode, ran.stdout), (2, ""))
        self.assertIn("rank 0 output[0]: lacks rank 0 chunk 0", ran.stderr)
        unproven = run("ring.py", 3, "--lacking", 1, options=["--unverified"])
        self.assertEqual(unproven.returncode, 2)  # Check() failed all the same
        self.assertIn("<algo", unproven.stdout)

    def test_mistakes_are_told_by_line(self):
        for mistake, line, message in (
            ("stale", "old.copy(3)", "stale chunk: rank 0 input[0] was overwritten at "),
            ("link", "0).copy(2)", "no link from rank 0 to rank 2 in ring, 4 ranks"),
            ("links_of_reduce", "reduce(chunk(2", "no link from rank 2 to rank 0"),
            ("empty", '"tmp"', "rank 0 has no buffer 'tmp' yet"),
            ("beyond", "2, 2)", "rank 0 input[2..3] is out of range (3 chunks there"),
            ("itself", "at.reduce(at)", "cannot reduce rank 0 input[0] into rank 0 input[0]: a chunk cannot be"),
            ("python", "[][1]", "IndexError: list index out of range"),
            ("nested", "inner", "there is a program here already"),
            ("outside", "outside", "there is no program here"),
            ("ranks", "AllReduce(5", "the collective has 5 ranks, the topology 4"),
        ):
            with self.subTest(mistake):
                ran = run("wrong.py", mistake)
                self.assertEqual((ran.returncode, ran.stdout), (2, ""))
                number = line_of("wrong.py", line) + (mistake == "outside")
                self.assertIn(f"wrong.py:{number}: {message}", ran.stderr)
                self.assertEqual(ran.stderr.count("\n"), 1, ran.stderr)

    def test_odd_buffers_are_told(self):
        for which, message in (("none", "must give a list"), ("short", "for each of 2 ranks"),
                               ("empty", "needs an input and an output"), ("mixed", "one list for both"),
                               ("text", "rank 0's input[0] must be a Chunk or None, not 'a'"),
                               ("early", "rank 0's output holds chunks at the start")):
            with self.subTest(which):
                ran = run("odd_buffers.py", which)
                self.assertEqual((ran.returncode, ran.stdout), (2, ""))
                self.assertIn(f"odd_buffers.py:{line_of('odd_buffers.py', 'MSCCLProgram(')}: Odd.init_buffers()",
                              ran.stderr)
                self.assertIn(message, ran.stderr)

    def test_odd_command_lines(self):
        ran = run("/no/such/script.py")
        self.assertEqual((ran.returncode, ran.stdout), (2, ""))
        self.assertIn("/no/such/script.py: there is no such file", ran.stderr)
        ran = run("ring.py", "few")  # the script's own parser
        self.assertEqual(ran.returncode, 2)
        self.assertIn("invalid int value: 'few'", ran.stderr)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "broken.py")
            pathlib.Path(path).write_text("from msccl.language import *\nwith MSCCLProgram(:\n")
            ran = run(path)
            self.assertEqual(ran.returncode, 2)
            self.assertIn("broken.py:2: invalid syntax", ran.stderr)
            pathlib.Path(folder, "helper.py").write_text("ranks = 3\n")
            pathlib.Path(path).write_text("import helper, sys\nprint(helper.ranks, sys.argv[1:], __name__)\n")
            self.assertEqual(run(path, "--format", "x").stdout, "3 ['--format', 'x'] __main__\n")


class Topologies(unittest.TestCase):
    def test_links(self):
        from polyccl.msccl import topologies as t
        for made, ranks, links in ((t.fully_connected(4), 4, 12), (t.ring(5), 5, 10), (t.ring(2), 2, 2),
                                   (t.line(4), 4, 6), (t.star(4), 4, 6), (t.hub_and_spoke(3), 3, 6),
                                   (t.dgx1(), 8, 32), (t.dgx_a100(), 8, 56), (t.amd4(), 4, 8), (t.amd8(), 8, 56),
                                   (t.distributed_fully_connected(t.line(2), 2, 1), 4, 12),
                                   (t.distributed_hub_and_spoke(t.line(2), 2, 1), 4, 12)):
            with self.subTest(made.name):
                self.assertEqual(made.num_nodes(), ranks)
                pairs = {(src, dst) for dst in made.nodes() for src in made.sources(dst)}
                self.assertEqual(len(pairs), links)
                self.assertEqual(pairs, {(src, dst) for src in made.nodes() for dst in made.destinations(src)})
                self.assertTrue(all(made.link(src, dst) > 0 and src != dst for src, dst in pairs))
        self.assertEqual(sum(map(sum, t.dgx1().links)), 2 * 24)  # six NVLinks a GPU
        one_way = t.Topology("one way", [[0, 0], [1, 0]])
        self.assertEqual((one_way.link(0, 1), one_way.link(1, 0)), (1, 0))
        self.assertEqual(t.reverse_topology(one_way).link(1, 0), 1)
        self.assertEqual(t.binarize_topology(t.dgx_a100()).link(0, 1), 1)
        text = "\tGPU0\tGPU1\nGPU0\t X \tNV12\nGPU1\tNV12\t X \n"
        self.assertEqual(t.nvlink_only(text).links, [[0, 12], [12, 0]])
        with self.assertRaises(ValueError):
            t.Topology("switch", [[0]], [([0], [0], 0, "dead")])


COMMAND = os.environ.get("POLYCCL_COMMAND")


@unittest.skipUnless(COMMAND, "POLYCCL_COMMAND names no polyccl command")
class Data(unittest.TestCase):
    """What scripts print runs, and moves every element to its place."""

    def test_plans_run(self):
        for script, *args in (("ring.py", "3", "--protocol", "LL"), ("manual_ring.py", "2", "2"), ("two_step.py",),
                              ("inplace.py", "allgather_inplace"), ("custom.py", "next", "detour"),
                              ("custom.py", "sum", "0")):
            with self.subTest(script, args=args), tempfile.TemporaryDirectory() as folder:
                made = run(script, *args, options=["--format", "plan" if script == "custom.py" else "xml"])
                self.assertEqual(made.returncode, 0, made.stderr)
                path = os.path.join(folder, "plan")
                pathlib.Path(path).write_text(made.stdout)
                ran = subprocess.run([COMMAND, "run", path, "--size", "12k", "--iters", "1"], capture_output=True,
                                     text=True, timeout=60)
                self.assertEqual(ran.returncode, 0, ran.stderr)
                self.assertIn("# Out of bounds values : 0 OK", ran.stdout)


PUBLIC = os.environ.get("POLYCCL_MSCCL_TOOLS")


@unittest.skipUnless(PUBLIC, "POLYCCL_MSCCL_TOOLS names no checkout of the public tools")
class PublicExamples(unittest.TestCase):
    """The public tool's examples, where a checkout is at hand."""

    def test_examples_run_unmodified(self):
        for example in (pathlib.Path(__file__).parent / "public_examples.txt").read_text().splitlines():
            if example and not example.startswith("#"):
                words = example.split()
                with self.subTest(example):
                    ran = run(os.path.join(PUBLIC, "examples", "mscclang", words[0]), *words[1:])
                    self.assertEqual(ran.returncode, 0, ran.stderr)
                    self.assertTrue(ran.stdout.startswith("<algo "))


if __name__ == "__main__":
    unittest.main()
