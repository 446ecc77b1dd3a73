"""The names of MSCCLang's buffers, policies and instructions."""

from enum import Enum


class _Named(Enum):
    def __str__(self):
        return self.value

    def __lt__(self, other):
        return self.value < other.value


class Buffer(_Named):
    input = "i"
    output = "o"
    scratch = "s"


class ThreadblockPolicy(_Named):
    """auto: the compiler places operations; manual: sendtb, recvtb and ch of each operation do."""

    auto = "auto"
    manual = "manual"


ThreadBlockPolicy = ThreadblockPolicy


class ReplicationPolicy(_Named):
    """Which part of the buffers an instance takes."""

    interleaved = "interleaved"
    batched = "batched"


class Instruction(_Named):
    nop = "nop"
    send = "s"
    recv = "r"
    recv_copy_send = "rcs"
    recv_reduce_send = "rrs"
    recv_reduce_copy = "rrc"
    recv_reduce_copy_send = "rrcs"
    copy = "cpy"
    reduce = "re"
    delete = "d"
    start = "st"


class ChunkInstruction(_Named):
    start = "start"
    reduce = "reduce"
    send = "send"
