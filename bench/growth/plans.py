#!/usr/bin/env python3
"""Families of plans that grow: plans.py FAMILY N writes one, plans.py --list names them.

Each family has some N of one thing (thread blocks, waits, connections, ranks, chunks of scratch, ways through other
ranks ...) and little else, so that work that grows faster than the plan's text shows. Families that begin with `wrong_`
are refused; what is measured there is the way to the message.
"""
import sys


def head(collective, ranks, chunks, *more):
    return ["polyccl-plan 1", 'name "growth"', f"collective {collective}", f"ranks {ranks}", f"chunks {chunks}",
            *more]


def one_rank(scratch=2):
    return head("broadcast", 1, 1, "inplace yes") + [f"rank 0 scratch {scratch}"]


def two_ranks(chunks=1, *more):
    return head("broadcast", 2, chunks, "inplace yes", *more)


def blocks_in_a_chain(n):
    """N thread blocks, each waits for the one before."""
    return one_rank() + [f"tb\nnop{f' wait {i - 1}.0' if i else ''}" for i in range(n)]


def two_blocks_in_turn(n):
    """Two thread blocks that wait for each other N times, beside N idle ones."""
    text = one_rank() + ["tb"]
    text += [f"copy i0 s0 x1{f' wait 1.{i - 1}' if i else ''}" for i in range(n)] + ["tb"]
    return text + [f"copy i0 s1 x1 wait 0.{i}" for i in range(n)] + ["tb"] * n


def readers_of_a_chunk(n):
    """N thread blocks in a chain read one chunk, one writes it at last."""
    text = one_rank(n + 1)
    text += [f"tb\ncopy i0 s{i + 1} x1{f' wait {i - 1}.0' if i else ''}" for i in range(n)]
    return text + [f"tb\ncopy s1 i0 x1 wait {n - 1}.0"]


def scratch_far_apart(n):
    """N chunks out of a million of scratch."""
    text = two_ranks() + ["rank 0 scratch 1048576", "tb", "send i0 x1 to 1.0"]
    text += [f"copy i0 s{i * 104729 % 1048576} x1" for i in range(n)]
    return text + ["rank 1 scratch 1048576", "tb", "recv i0 x1 from 0.0"]


def scratch_never_used(n):
    """N / 100 ranks with a million chunks of scratch that nobody touches."""
    ranks = max(2, n // 100)
    text = head("broadcast", ranks, 1, "inplace yes")
    for r in range(ranks):
        text += [f"rank {r} scratch 1048576", "tb"]
        text += [f"recv i0 x1 from {r - 1}.0"] if r else []
        text += [f"send i0 x1 to {r + 1}.0"] if r + 1 < ranks else []
    return text


def messages_of_a_connection(n):
    text = two_ranks() + ["rank 0 scratch 0", "tb"] + ["send i0 x1 to 1.0 get"] * n
    return text + ["rank 1 scratch 1", "tb"] + ["recv s0 x1 from 0.0"] * n + ["copy s0 i0 x1"]


def connections_of_a_pair(n):
    text = two_ranks(n) + ["rank 0 scratch 0"] + [f"tb\nsend i{i} x1 to 1.{i}" for i in range(n)]
    return text + ["rank 1 scratch 0"] + [f"tb\nrecv i{i} x1 from 0.{i}" for i in range(n)]


def ranks_in_a_chain(n):
    text = head("broadcast", n, 1, "inplace yes")
    for r in range(n):
        step = (f"rcs i0 x1 from {r - 1}.0 to {r + 1}.0" if 0 < r < n - 1 else
                f"recv i0 x1 from {r - 1}.0" if r else "send i0 x1 to 1.0")
        text += [f"rank {r} scratch 0", "tb", step]
    return text


def all_to_all(n):
    """About N messages, each in a thread block of its own."""
    ranks = max(2, int(n**0.5))
    text = head("alltoall", ranks, 1)
    for r in range(ranks):
        text += [f"rank {r} scratch 0", "tb", f"copy i{r} o{r} x1"]
        for d in range(1, ranks):
            to, source = (r + d) % ranks, (r - d) % ranks
            text += ["tb", f"send i{to} x1 to {to}.0", "tb", f"recv o{source} x1 from {source}.0"]
    return text


def handed_over(n):
    """What is received N times into one chunk is taken by another thread block each time."""
    text = two_ranks() + ["rank 0 scratch 0", "tb"] + ["send i0 x1 to 1.0 get"] * n + ["rank 1 scratch 2", "tb"]
    text += [f"recv s0 x1 from 0.0{f' wait 1.{i - 1}' if i else ''}" for i in range(n)] + ["tb"]
    return text + [f"copy s0 i0 x1 wait 0.{i}" for i in range(n)]


def ordered_by_messages(n):
    """N thread blocks write one chunk in an order that only messages to another rank and back make."""
    text = two_ranks() + ["rank 0 scratch 2"]
    for i in range(n):
        text += ["tb"] + ([f"recv s0 x1 from 1.{i - 1}"] if i else []) + ["copy i0 s1 x1"]
        text += [f"send i0 x1 to 1.{i}"] if i < n - 1 else []
    text += ["rank 1 scratch 1", "tb"] + [f"recv i0 x1 from 0.{i}\nsend i0 x1 to 0.{i}" for i in range(n - 1)]
    return text


def lines_of_a_program(n):
    text = head("broadcast", 1, 1, "inplace yes") + [f'file {i} "{i}.lua"' for i in range(n)]
    return text + ["rank 0 scratch 1", "tb"] + [f"copy i0 s0 x1 at {i}:{i}" for i in range(n)]


def sums_that_share(n):
    """N / 20 ranks, each of which gets the sum of the same 8 parts in an order of its own; 16 chunks."""
    chunks, parts, ranks = 16, 8, max(9, n // 20)
    text = head("allreduce", ranks, chunks) + [f"rank 0 scratch {(parts + 1) * chunks}", "tb"]
    for r in range(1, ranks):
        at = r % parts * chunks
        text += [f"recv s{at} x{chunks} from {r}.0" if r < parts or r == parts else
                 f"rrc s{at} s{at} x{chunks} from {r}.0"]
    text += [f"reduce i0 s0 x{chunks}"]
    total, seed = parts * chunks, 1
    for r in range(1, ranks + 1):
        order = list(range(parts))
        for i in range(parts - 1):
            seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
            j = i + (seed >> 33) % (parts - i)
            order[i], order[j] = order[j], order[i]
        text += [f"copy s{order[0] * chunks} s{total} x{chunks}"]
        text += [f"reduce s{p * chunks} s{total} x{chunks}" for p in order[1:]]
        text += [f"send s{total} x{chunks} to {r}.0" if r < ranks else f"copy s{total} o0 x{chunks}"]
    for r in range(1, ranks):
        text += [f"rank {r} scratch 0", "tb", f"send i0 x{chunks} to 0.0", f"recv o0 x{chunks} from 0.0"]
    return text


def wrong_ring_of_waits(n):
    """N thread blocks wait for one another in a ring."""
    return one_rank() + [f"tb\nnop wait {(i - 1) % n}.0" for i in range(n)]


def wrong_ring_of_credits(n):
    """Two long thread blocks wait for a slot of each other, and N more in a chain for one of the two."""
    text = two_ranks(1, "depth 1") + ["rank 0 scratch 2", "tb", "send s0 x1 to 1.0"] + ["nop"] * n
    text += ["send s0 x1 to 1.0"] + ["recv s1 x1 from 1.0"] * 2
    text += [f"tb\nnop wait {i}.{0 if i else n + 1}" for i in range(n)]
    text += ["rank 1 scratch 2", "tb", "send s0 x1 to 0.0"] + ["nop"] * n
    return text + ["send s0 x1 to 0.0"] + ["recv s1 x1 from 0.0"] * 2


FAMILIES = {name: made for name, made in list(globals().items())
            if callable(made) and name not in ("head", "one_rank", "two_ranks")}


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(FAMILIES))
    elif len(sys.argv) == 3 and sys.argv[1] in FAMILIES:
        print("\n".join(FAMILIES[sys.argv[1]](int(sys.argv[2]))))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
