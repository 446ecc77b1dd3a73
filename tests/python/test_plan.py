"""The package: plans as text and XML, proven, read back."""

import contextlib
import inspect
import io
import pathlib
import unittest

import polyccl

DOCS = pathlib.Path(__file__).parent.parent.parent / "docs"


def ring(ranks, skip=0, **options):
    program = polyccl.Program("allreduce", ranks, ranks, inplace=True, **options)
    for index in range(ranks):
        at = program.chunk((index + 1) % ranks, "input", index)
        for step in range(2, ranks + 1 - skip):
            at = program.chunk((index + step) % ranks, "input", index).reduce(at)
        for step in range(1, ranks):
            at = at.copy((at.rank + 1) % ranks)
    return program


class Plans(unittest.TestCase):
    def fails(self, message, call, *arguments):
        with self.assertRaises(polyccl.Error) as caught:
            call(*arguments)
        self.assertIn(message, str(caught.exception))

    def test_a_plan_round_trips(self):
        plan = ring(4, name="my ring", instances=2, protocol="LL").compile()
        self.assertEqual((plan.name, plan.collective, plan.protocol, plan.ranks, plan.chunks, plan.inplace),
                         ("my ring", "allreduce", "LL", 4, 8, True))
        report = plan.verify()
        self.assertTrue(report.identical)
        self.assertEqual(report.channels, plan.channels)
        text = plan.text()
        again = polyccl.Plan.parse(text.encode())
        self.assertEqual(again.text(), text)
        from_xml = polyccl.Plan.parse(plan.xml())
        self.assertEqual(list(from_xml.steps()), list(plan.steps()))
        from_xml.verify()
        self.assertIn('minBytes="0"', plan.xml("azure"))
        self.assertNotIn('type="rrcs"', plan.xml("rccl"))
        self.assertEqual(plan.caveats("rccl"), [])
        self.fails("unknown plan format 'json'", plan.xml, "json")

    def test_what_a_file_cannot_say_is_said(self):
        program = polyccl.Program("broadcast", 2, 1, inplace=True)
        program.chunk(0, "input").copy(1)
        said = program.compile().caveats("rccl")
        self.assertEqual(len(said), 2)
        self.assertIn("this one is right for root 0 alone", said[0])

    def test_examples_of_the_documentation_run(self):
        blocks = {"docs/python.md": (DOCS / "python.md").read_text(), "polyccl": inspect.getdoc(polyccl)}
        for name, text in blocks.items():
            lines = text.split("    import polyccl\n", 1)[1].splitlines()
            end = next(i for i, line in enumerate(lines) if line and not line.startswith("    "))
            printed = io.StringIO()
            with self.subTest(name), contextlib.redirect_stdout(printed):
                exec(inspect.cleandoc("import polyccl\n" + "\n".join(lines[:end])), {})
            self.assertIn("polyccl-plan 1\n", printed.getvalue())

    def test_steps_say_what_moves(self):
        program = polyccl.Program("broadcast", 3, 1, inplace=True)
        program.chunk(0, "input").copy(1).copy(2)
        steps = list(program.compile().steps())
        self.assertEqual([(step.rank, step.op, step.count) for step in steps],
                         [(0, "send", 1), (1, "rcs", 1), (2, "recv", 1)])

    def test_a_wrong_program_has_no_plan(self):
        self.fails("lacks rank 0 chunk 0", ring(3, skip=1).compile)

    def test_a_wrong_plan_is_refused(self):
        text = ring(2).compile().text()
        self.fails("my.plan:1", polyccl.Plan.parse, "polyccl-plan 9\n", "my.plan")
        swapped = text.replace("rrc i", "recv i", 1).replace("rrcs i", "rcs i", 1)
        self.assertNotEqual(swapped, text)
        self.fails("", lambda: polyccl.Plan.parse(swapped).verify())
        self.fails("nowhere.plan", polyccl.Plan.read, "/nowhere.plan")


if __name__ == "__main__":
    unittest.main()
