"""libpolyccl.so through ctypes: finding it, its structures, its functions.

The structures mirror include/polyccl/*.h; tests/python compares every offset with the C compiler's.
"""

import ctypes
import ctypes.util
import os
import pathlib
from ctypes import (CFUNCTYPE, POINTER, Structure, byref, c_bool, c_char_p, c_double, c_int, c_int32, c_size_t, c_uint32,
                    c_uint64, c_uint8, c_void_p, sizeof)

SUCCESS = 0
RESULTS = {
    1: "invalid",
    2: "unsupported",
    3: "limit",
    4: "memory",
    5: "system",
    6: "remote",
    7: "timeout",
    8: "internal",
}


class Error(Exception):
    """A failure, described in one line. For a fault in a program, the line begins with the author's file:line.

    kind: one of "invalid", "unsupported", "limit", "memory", "system", "remote", "timeout", "internal".
    """

    def __init__(self, message, kind="invalid"):
        super().__init__(message)
        self.kind = kind


class Location(Structure):
    _fields_ = [("file", c_char_p), ("line", c_int)]


class Leaf(Structure):
    _fields_ = [("rank", c_int32), ("chunk", c_int32)]


class RefData(Structure):
    _fields_ = [("rank", c_int32), ("buffer", c_int32), ("index", c_int32), ("size", c_int32), ("stamp", c_uint64)]


class Hints(Structure):
    _fields_ = [("channel", c_int32), ("send_tb", c_int32), ("recv_tb", c_int32)]


class SizedStructure(Structure):
    """A struct of options, whose first member is its size."""

    def __init__(self, *arguments, **members):
        super().__init__(*arguments, **members)
        self.size = sizeof(self)


class ProgramConfig(SizedStructure):
    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("collective", c_int),
        ("ranks", c_int),
        ("chunks", c_int),
        ("chunks_out", c_int),
        ("inplace", c_bool),
        ("root", c_int),
        ("peer", c_int),
        ("protocol", c_int),
        ("instances", c_int),
        ("replication", c_int),
        ("min_bytes", c_size_t),
        ("max_bytes", c_size_t),
        ("manual", c_bool),
        ("no_fusion", c_bool),
    ]


class ProgramSummary(Structure):
    _fields_ = [
        ("ranks", c_int),
        ("chunks", c_int),
        ("operations", c_size_t),
        ("remote", c_size_t),
        ("longest", c_int),
        ("identical", c_bool),
    ]


class CompileOptions(SizedStructure):
    _fields_ = [
        ("size", c_size_t),
        ("placement", c_int),
        ("policy", c_int),
        ("schedule", c_int),
        ("topology", c_void_p),
        ("max_tbs", c_int),
        ("bytes", c_uint64),
        ("seconds", c_double),
        ("instances", c_int),
        ("no_fusion", c_bool),
        ("dump", c_char_p),
        ("dump_to", c_void_p),
        ("no_verify", c_bool),
        ("times", c_void_p),
    ]


class StepData(Structure):
    _fields_ = [
        ("op", c_uint8),
        ("src_buf", c_uint8),
        ("dst_buf", c_uint8),
        ("flags", c_uint8),
        ("src", c_int32),
        ("dst", c_int32),
        ("count", c_int32),
        ("recv", c_int32),
        ("send", c_int32),
        ("wait", c_int32),
        ("waits", c_int32),
        ("location", c_int32),
    ]


class ThreadBlockData(Structure):
    _fields_ = [("rank", c_int32), ("step", c_int32), ("steps", c_int32)]


class ConnectionData(Structure):
    _fields_ = [("src", c_int32), ("dst", c_int32), ("channel", c_int32)]


class PlanData(Structure):
    """The front of polyccl_plan, up to the last member that Python reads."""

    _fields_ = [
        ("name", c_char_p),
        ("collective", c_int),
        ("ranks", c_int32),
        ("chunks", c_int32),
        ("chunks_out", c_int32),
        ("inplace", c_bool),
        ("root", c_int32),
        ("peer", c_int32),
        ("protocol", c_int),
        ("order", c_int),
        ("fifo_depth", c_int32),
        ("min_bytes", c_uint64),
        ("max_bytes", c_uint64),
        ("redops", c_uint32),
        ("rank", c_void_p),
        ("tb", POINTER(ThreadBlockData)),
        ("step", POINTER(StepData)),
        ("wait", c_void_p),
        ("connection", POINTER(ConnectionData)),
        ("tbs", c_size_t),
        ("steps", c_size_t),
        ("waits", c_size_t),
        ("connections", c_size_t),
    ]


class VerifyReport(Structure):
    _fields_ = [
        ("fifo_depth", c_int32),
        ("uneven", c_bool),
        ("identical", c_bool),
        ("channels", c_int32),
        ("max_tbs", c_int32),
        ("longest", c_size_t),
    ]


# C name -> structure. The test of the layouts reads this.
STRUCTURES = {
    "polyccl_location": Location,
    "polyccl_leaf": Leaf,
    "polyccl_ref": RefData,
    "polyccl_hints": Hints,
    "polyccl_program_config": ProgramConfig,
    "polyccl_program_summary": ProgramSummary,
    "polyccl_compile_options": CompileOptions,
    "polyccl_step": StepData,
    "polyccl_thread_block": ThreadBlockData,
    "polyccl_connection": ConnectionData,
    "polyccl_plan": PlanData,
    "polyccl_verify_report": VerifyReport,
}


def _candidates():
    """Returns paths where the library may be, best first. POLYCCL_LIBRARY is the only one where it is set."""
    named = os.environ.get("POLYCCL_LIBRARY")
    if named:
        return [named]
    package = pathlib.Path(__file__).resolve().parent
    found = sorted(package.glob("libpolyccl.so*"))
    if package.parent.name == "python":  # a source tree
        built = package.parent.parent.glob("build/*/libpolyccl.so")
        found += sorted(built, key=lambda path: (path.parent.name != "release", path.parent.name))
    # An installed prefix: PREFIX/lib/python3/dist-packages/polyccl and PREFIX/lib[/TRIPLET]/libpolyccl.so.
    for parent in package.parents:
        if parent.name in ("lib", "lib64"):
            found += sorted(parent.glob("libpolyccl.so*")) + sorted(parent.glob("*/libpolyccl.so*"))
    system = ctypes.util.find_library("polyccl")
    return [str(path) for path in found] + [system or "libpolyccl.so.0"]


TakeText = CFUNCTYPE(None, c_void_p, c_char_p)

_PROTOTYPES = {
    "polyccl_last_error": (c_char_p, []),
    "polyccl_protocol_name": (c_char_p, [c_int]),
    "polyccl_collective_name": (c_char_p, [c_int]),
    "polyccl_protocol_parse": (c_int, [c_char_p, POINTER(c_int)]),
    "polyccl_collective_parse": (c_int, [c_char_p, POINTER(c_int)]),
    "polyccl_step_op_name": (c_char_p, [c_int]),
    "polyccl_program_create": (c_int, [POINTER(ProgramConfig), POINTER(c_void_p)]),
    "polyccl_program_destroy": (None, [c_void_p]),
    "polyccl_program_pre": (c_int, [c_void_p, c_int, c_int, c_bool]),
    "polyccl_program_post": (c_int, [c_void_p, c_int, c_int, POINTER(Leaf), c_int]),
    "polyccl_program_scratch": (c_int, [c_void_p, c_char_p, POINTER(c_int)]),
    "polyccl_program_chunk": (c_int, [c_void_p, c_int, c_int, c_int, c_int, Location, POINTER(RefData)]),
    "polyccl_program_copy": (c_int, [c_void_p, POINTER(RefData), c_int, c_int, c_int, Hints, Location,
                                     POINTER(RefData)]),
    "polyccl_program_reduce": (c_int, [c_void_p, POINTER(RefData), POINTER(RefData), Hints, Location,
                                       POINTER(RefData)]),
    "polyccl_program_group": (c_int, [c_void_p, POINTER(RefData), POINTER(RefData), Location, POINTER(RefData)]),
    "polyccl_program_set_topology": (c_int, [c_void_p, c_char_p]),
    "polyccl_program_origins": (c_int, [c_void_p, POINTER(RefData), c_int, Location, POINTER(Leaf), c_size_t,
                                        POINTER(c_size_t)]),
    "polyccl_program_destinations": (c_int, [c_void_p, POINTER(RefData), c_int, Location, POINTER(Leaf), c_size_t,
                                             POINTER(c_size_t)]),
    "polyccl_program_parallel_begin": (c_int, [c_void_p, c_int, Location]),
    "polyccl_program_parallel_end": (c_int, [c_void_p]),
    "polyccl_program_transfer": (c_int, [c_void_p, c_int, c_int, c_int, c_int, c_bool, Location]),
    "polyccl_program_finish": (c_int, [c_void_p]),
    "polyccl_program_check": (c_int, [c_void_p, POINTER(ProgramSummary)]),
    "polyccl_topology_open": (c_int, [c_char_p, POINTER(c_void_p)]),
    "polyccl_topology_destroy": (None, [c_void_p]),
    "polyccl_topology_linked": (c_bool, [c_void_p, c_int, c_int]),
    "polyccl_compile": (c_int, [c_void_p, POINTER(CompileOptions), POINTER(POINTER(PlanData))]),
    "polyccl_plan_destroy": (None, [POINTER(PlanData)]),
    "polyccl_plan_parse": (c_int, [c_char_p, c_char_p, c_size_t, POINTER(POINTER(PlanData))]),
    "polyccl_plan_read": (c_int, [c_char_p, POINTER(POINTER(PlanData))]),
    "polyccl_plan_write": (c_int, [POINTER(PlanData), c_int, c_void_p]),
    "polyccl_plan_caveats": (None, [POINTER(PlanData), c_int, TakeText, c_void_p]),
    "polyccl_plan_verify": (c_int, [POINTER(PlanData), POINTER(VerifyReport)]),
}


class _Library:
    """The loaded library. Loading waits for the first use, so that importing the package never fails."""

    def __init__(self):
        self.path = None
        self._loaded = None

    def _load(self):
        if self._loaded is None:
            tried = []
            for path in _candidates():
                try:
                    self._loaded = ctypes.CDLL(path)
                    self.path = path
                    break
                except OSError as error:
                    tried.append(str(error) if path in str(error) else f"{path}: {error}")
            else:
                raise Error("cannot load libpolyccl.so (build it, or name it in POLYCCL_LIBRARY): " + "; ".join(tried),
                            "system")
        return self._loaded

    def __getattr__(self, name):
        try:
            result, arguments = _PROTOTYPES["polyccl_" + name]
        except KeyError:
            raise AttributeError(name) from None
        loaded = self._load()
        try:
            function = getattr(loaded, "polyccl_" + name)
        except AttributeError:
            raise Error(f"{self.path} lacks polyccl_{name}: the library is of another version than the package",
                        "system") from None
        function.restype, function.argtypes = result, arguments
        setattr(self, name, function)  # the next use finds it at once
        return function


library = _Library()


def check(result):
    """Raises Error for a result that is not success."""
    if result != SUCCESS:
        message = library.last_error().decode("utf-8", "replace")
        raise Error(message or f"libpolyccl: result {result}", RESULTS.get(result, "internal"))


class Memory:
    """A FILE* of the C library that collects what is written to it, as text."""

    def __init__(self):
        libc = ctypes.CDLL(None, use_errno=True)
        libc.open_memstream.restype, libc.open_memstream.argtypes = c_void_p, [POINTER(c_void_p), POINTER(c_size_t)]
        libc.fclose.restype, libc.fclose.argtypes = c_int, [c_void_p]
        libc.free.restype, libc.free.argtypes = None, [c_void_p]
        self._libc, self._data, self._size = libc, c_void_p(), c_size_t()
        self.file = libc.open_memstream(byref(self._data), byref(self._size))
        if not self.file:
            raise Error("cannot open a stream in memory: " + os.strerror(ctypes.get_errno()), "system")

    def close(self):
        """Closes the stream and returns what was written."""
        failed = self._libc.fclose(self.file)
        text = ctypes.string_at(self._data, self._size.value) if not failed else b""
        self._libc.free(self._data)
        if failed:
            raise Error("cannot write to a stream in memory", "memory")
        return text.decode("utf-8")
