"""The structures of python/polyccl/_library.py lie in memory as the C compiler lays them out."""

import ctypes
import os
import subprocess
import unittest

from polyccl import _library


class Layout(unittest.TestCase):
    def test_structures_are_as_in_c(self):
        lines = subprocess.run([os.environ["POLYCCL_LAYOUT"]], check=True, capture_output=True, text=True).stdout
        in_c = {}
        for line in lines.splitlines():
            name, field, *numbers = line.split()
            in_c.setdefault(name, {})[field] = tuple(map(int, numbers))
        self.assertEqual(set(in_c), set(_library.STRUCTURES))
        for name, structure in _library.STRUCTURES.items():
            size = in_c[name].pop(".", None)
            here = {field: (getattr(structure, field).offset, getattr(structure, field).size)
                    for field, _ in structure._fields_}
            with self.subTest(structure=name):
                self.assertEqual(here, in_c[name])
                if size is not None:  # polyccl_plan: only its front is mirrored
                    self.assertEqual(ctypes.sizeof(structure), size[0])


if __name__ == "__main__":
    unittest.main()
