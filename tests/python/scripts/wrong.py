# Mistakes, one an argument.
import sys

from msccl.language import *
from msccl.topologies import *
from msccl.language.collectives import AllReduce


def stale():
    old = chunk(0, Buffer.input, 0)
    chunk(1, Buffer.input, 0).copy(0)
    old.copy(3)


def link():
    chunk(0, Buffer.input, 0).copy(2)


def empty():
    chunk(0, "tmp", 0)


def beyond():
    chunk(0, Buffer.input, 2, 2)


def itself():
    at = chunk(0, Buffer.input, 0)
    at.reduce(at)


def python():
    return [][1]


def links_of_reduce():
    chunk(0, Buffer.input, 0).reduce(chunk(2, Buffer.input, 0))


def nested():
    with MSCCLProgram("inner", ring(4), AllReduce(4, 3, True), 1):
        pass


if sys.argv[1] == "outside":
    chunk(0, Buffer.input, 0)
elif sys.argv[1] == "ranks":
    MSCCLProgram("ranks", ring(4), AllReduce(5, 1, True), 1)
else:
    with MSCCLProgram("wrong", ring(4), AllReduce(4, 3, True), 1):
        globals()[sys.argv[1]]()
