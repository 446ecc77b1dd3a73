"""The language of MSCCLang scripts."""

# Scripts that say `from msccl.language import *` also get these of the standard library from it.
import functools
import heapq
from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum

from .buffer import BufferSlice
from .chunk import Chunk, ReduceChunk
from .ir import Buffer, ChunkInstruction, Instruction, ReplicationPolicy, ThreadBlockPolicy, ThreadblockPolicy
from .program import XML, Check, MSCCLProgram, Ref, chunk, create_scratch, ir_to_xml, settings

__all__ = ["Buffer", "BufferSlice", "Check", "Chunk", "ChunkInstruction", "Enum", "Instruction", "MSCCLProgram",
           "ReduceChunk", "Ref", "ReplicationPolicy", "ThreadBlockPolicy", "ThreadblockPolicy", "XML", "chunk",
           "create_scratch", "dataclass", "defaultdict", "field", "functools", "heapq", "ir_to_xml"]
