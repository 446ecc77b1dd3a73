/* Streams, events and groups: two ranks, two communicators X and Y, two streams on each rank.
 *
 * Stands for the operations of src/runtime/op.h and the streams of include/polyccl/stream.h and group.h. A stream is a
 * FIFO of items, a communicator's queue a FIFO of operations. An operation begins when it is at the head of its
 * communicator's queue and at the head of all its streams, and leaves them when it has ended; one progress thread on
 * each rank does all this, in any order. A collective ends on a rank when both ranks have begun it (the worst that a
 * plan may ask for), and the k-th operation of a communicator meets the other rank's k-th.
 *
 * X has operations X1, X2, X3 (a group on both streams) and X4, Y has Y1 and Y2. X1 and X4 take one stream, which one
 * each rank chooses, and the others take the other. Each rank's user issues them in any order that keeps X1 X2 X3 X4
 * and Y1 Y2, and Y1 before X2 and X3 before Y2, which share streams (ranks that order two calls on one stream
 * differently ask for a deadlock, as with NCCL). Rank 0 records an event behind X4, and Y2 waits for it; rank 1 records
 * one behind X1, and Y1 waits for it; if the event was not recorded yet when it is waited for, the wait is for nothing.
 *
 * right:
 * wrong: ONE_AT_A_TIME invalid end state
 * wrong: NO_QUEUE assertion violated
 * wrong: GROUP_ON_ONE_STREAM assertion violated
 * wrong: NO_WAIT assertion violated
 */
#define X1 0
#define X2 1
#define X3 2
#define X4 3
#define Y1 4
#define Y2 5
#define OPERATIONS 6
#define RECORD 6
#define WAIT 7
#define IS_Y(op) (op >= Y1)

chan stream[4] = [8] of {byte}; /* of rank r: 2 r and 2 r + 1 */
chan queue[4] = [4] of {byte};  /* of rank r: X in 2 r, Y in 2 r + 1 */
byte first_stream[2];           /* where X1 is, and X4; Y1 and Y2 are on the other */

typedef progress {
  bool begun[OPERATIONS], ended[OPERATIONS];
  byte count[2]; /* operations of X and of Y that have begun */
  bool recorded, waits; /* the event; there is a wait for it */
  bool all_issued;
  bool busy;
};
progress rank[2];

#define X_STREAM(r) stream[2 * r + first_stream[r]]
#define Y_STREAM(r) stream[2 * r + 1 - first_stream[r]]
#define HEAD(c, x) (c?[eval(x)])

#ifdef NO_QUEUE
#define FIRST(r, op) true
#else
#define FIRST(r, op) HEAD(queue[2 * r + IS_Y(op)], op)
#endif

#ifdef GROUP_ON_ONE_STREAM
#define X3_MAY HEAD(Y_STREAM(me), X3)
#else
#define X3_MAY (HEAD(X_STREAM(me), X3) && HEAD(Y_STREAM(me), X3))
#endif

/* The number of an operation within its communicator is what the messages of both ranks meet by. */
inline begin(op, number) {
  assert(rank[me].count[IS_Y(op)] == number);
  assert(!rank[me].begun[op]);
  rank[me].begun[op] = true;
  rank[me].count[IS_Y(op)]++;
#ifdef ONE_AT_A_TIME
  rank[me].busy = true
#endif
}

inline end(op) {
  rank[me].ended[op] = true;
  rank[me].busy = false;
  queue[2 * me + IS_Y(op)]??eval(op)
}

#define MAY_BEGIN(op) (!rank[me].begun[op] && !rank[me].busy && FIRST(me, op))
#define MAY_END(op) (rank[me].begun[op] && !rank[me].ended[op] && rank[1 - me].begun[op])

proctype engine(byte me) {
  do
  :: atomic { MAY_BEGIN(X1) && HEAD(X_STREAM(me), X1) -> begin(X1, 0) }
  :: atomic { MAY_BEGIN(X2) && HEAD(Y_STREAM(me), X2) ->
      begin(X2, 1);
      assert(rank[me].ended[X1] && rank[me].ended[Y1]) }
  :: atomic { MAY_BEGIN(X3) && X3_MAY ->
      begin(X3, 2);
      assert(rank[me].ended[X2] && rank[me].ended[Y1] && rank[me].ended[X1]);
      assert(me == 0 || rank[me].recorded) } /* all that is before it on its streams */
  :: atomic { MAY_BEGIN(X4) && HEAD(X_STREAM(me), X4) ->
      begin(X4, 3);
      assert(rank[me].ended[X3]) }
  :: atomic { MAY_BEGIN(Y1) && HEAD(Y_STREAM(me), Y1) ->
      begin(Y1, 0);
      assert(me == 0 || !rank[me].waits || rank[me].ended[X1]) }
  :: atomic { MAY_BEGIN(Y2) && HEAD(Y_STREAM(me), Y2) ->
      begin(Y2, 1);
      assert(rank[me].ended[X3] && rank[me].ended[Y1]);
      assert(me == 1 || !rank[me].waits || rank[me].ended[X4]) }
  :: atomic { MAY_END(X1) -> end(X1); X_STREAM(me)?eval(X1) }
  :: atomic { MAY_END(X2) -> end(X2); Y_STREAM(me)?eval(X2) }
  :: atomic { MAY_END(X3) -> end(X3); X_STREAM(me)??eval(X3); Y_STREAM(me)??eval(X3) }
  :: atomic { MAY_END(X4) -> end(X4); X_STREAM(me)?eval(X4) }
  :: atomic { MAY_END(Y1) -> end(Y1); Y_STREAM(me)?eval(Y1) }
  :: atomic { MAY_END(Y2) -> end(Y2); Y_STREAM(me)?eval(Y2) }
  :: atomic { !rank[me].busy && HEAD(X_STREAM(me), RECORD) -> X_STREAM(me)?RECORD; rank[me].recorded = true }
  :: atomic { !rank[me].busy && HEAD(Y_STREAM(me), RECORD) -> Y_STREAM(me)?RECORD; rank[me].recorded = true }
#ifdef NO_WAIT
  :: atomic { !rank[me].busy && HEAD(X_STREAM(me), WAIT) -> X_STREAM(me)?WAIT }
  :: atomic { !rank[me].busy && HEAD(Y_STREAM(me), WAIT) -> Y_STREAM(me)?WAIT }
#else
  :: atomic { !rank[me].busy && rank[me].recorded && HEAD(X_STREAM(me), WAIT) -> X_STREAM(me)?WAIT }
  :: atomic { !rank[me].busy && rank[me].recorded && HEAD(Y_STREAM(me), WAIT) -> Y_STREAM(me)?WAIT }
#endif
  :: rank[me].all_issued && empty(X_STREAM(me)) && empty(Y_STREAM(me)) -> break
  od;
  assert(empty(queue[2 * me]) && empty(queue[2 * me + 1]));
  assert(rank[me].count[0] == 4 && rank[me].count[1] == 2)
}

inline record() {
  X_STREAM(me)!RECORD
}

inline wait() {
  Y_STREAM(me)!WAIT;
  rank[me].waits = true
}

proctype user(byte me) {
  byte issued_x, issued_y;
  do
  :: atomic { issued_x == 0 ->
      queue[2 * me]!X1;
      X_STREAM(me)!X1;
      if
      :: me == 1 -> record()
      :: else
      fi;
      issued_x++ }
  :: atomic { issued_y == 0 ->
      if
      :: me == 1 && issued_x > 0 -> wait()
      :: else
      fi;
      queue[2 * me + 1]!Y1;
      Y_STREAM(me)!Y1;
      issued_y++ }
  :: atomic { issued_x == 1 && issued_y == 1 ->
      queue[2 * me]!X2;
      Y_STREAM(me)!X2;
      issued_x++ }
  :: atomic { issued_x == 2 ->
      queue[2 * me]!X3;
      X_STREAM(me)!X3;
      Y_STREAM(me)!X3;
      issued_x++ }
  :: atomic { issued_x == 3 ->
      queue[2 * me]!X4;
      X_STREAM(me)!X4;
      if
      :: me == 0 -> record()
      :: else
      fi;
      issued_x++ }
  :: atomic { issued_x >= 3 && issued_y == 1 ->
      if
      :: me == 0 && issued_x > 3 -> wait()
      :: else
      fi;
      queue[2 * me + 1]!Y2;
      Y_STREAM(me)!Y2;
      issued_y++ }
  :: issued_x == 4 && issued_y == 2 -> break
  od;
  rank[me].all_issued = true
}

init {
  atomic {
    if :: first_stream[0] = 0 :: first_stream[0] = 1 fi;
    if :: first_stream[1] = 0 :: first_stream[1] = 1 fi;
    run user(0);
    run user(1);
    run engine(0);
    run engine(1)
  }
}
