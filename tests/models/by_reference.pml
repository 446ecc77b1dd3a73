/* Messages by reference: a sender that lends its buffer (get), a receiver that announces its own (put), over calls that
 * either side may be ahead in, and an abort at any moment.
 *
 * Stands for src/executor/references.h (view_peer, choose_way, read_note, find_ways) and src/executor/execute.c
 * (announce, publish, pccl_execution_lends, pccl_execution_leave, pccl_execution_quiet, pccl_execution_wait). abort.pml
 * has the notice.
 *
 * In each call the sender sends one message, by slot, get or put. Buffers have two elements, so that a message can be
 * half of one call and half of another. In call k the user's send buffer holds k, twice; the user overwrites it as soon
 * as the call has returned, and looks at and overwrites the receive buffer then. The receiver uses two receive buffers
 * in turn. After the abort a rank notices it whenever it waits, and its call then fails.
 *
 * What a call that fails guarantees: no peer touches its buffers any more, because it waits for every peer to be out of
 * its call (`inside`, set before a call looks at the notice). This wait has a limit. STOPPED is a peer that is stopped
 * for longer: it may then read or write what is the user's again, but its own call fails and never passes such data on,
 * because a call with messages by reference looks at the notice once more at its end.
 *
 * right:
 * right: ABORT
 * right: ABORT STOPPED
 * wrong: HEAD_FIRST assertion violated
 * wrong: NO_WAIT_FOR_LENT assertion violated
 * wrong: NO_CALL_NUMBER assertion violated
 * wrong: NUMBER_FIRST assertion violated
 * wrong: ABORT NO_WAIT_FOR_PEERS assertion violated
 * wrong: ABORT NO_LOOK_AT_ENTRY assertion violated
 * wrong: ABORT LOOKS_BEFORE_INSIDE assertion violated
 * wrong: ABORT ANNOUNCED_BEFORE_LOOK assertion violated
 * wrong: ABORT OUTSIDE_LAST invalid end state
 * wrong: ABORT STOPPED NO_LAST_LOOK assertion violated
 */
#define CALLS 3
#define DEPTH 2
#define BY_SLOT 0
#define BY_GET 1
#define BY_PUT 2

byte way_of[CALLS + 1];
bool aborted;

byte send_buffer[2];
bool lent; /* the sender's call has not returned */
typedef pair { byte element[2] };
pair receive_buffer[2];
byte owner[2]; /* the receiver's call that the buffer is the library's in; 0: it is the user's */

/* The connection and the receiver's announcement. */
typedef message { byte way, element[2] };
message slot[DEPTH];
byte tail, head;
byte announced_buffer, announced; /* pccl_rank_cell: buffer, call */
bool inside[2];                   /* the sender, the receiver may move data */

#ifdef ABORT
#define OR_ABORTED :: aborted -> failed = true
#else
#define OR_ABORTED
#endif

#ifdef STOPPED
#define MAY_TOUCH(right) true
#else
#define MAY_TOUCH(right) (right)
#endif

inline enter(me) {
#ifdef LOOKS_BEFORE_INSIDE
  failed = aborted;
  inside[me] = true
#else
  inside[me] = true; /* and a full fence */
#ifndef NO_LOOK_AT_ENTRY
  failed = aborted
#endif
#endif
}

/* The call has failed: its buffers become the user's when no peer is inside any more, or at once if it was refused at
 * its entry, before it lent or announced anything. */
inline leave(me) {
#ifndef OUTSIDE_LAST
  inside[me] = false;
#endif
#ifndef NO_WAIT_FOR_PEERS
  if
  :: !inside[1 - me]
  :: refused
#ifdef STOPPED
  :: true
#endif
  fi;
#endif
  inside[me] = false
}

proctype sender() {
  byte call = 1, target;
  bool failed, refused;
  do
  :: call <= CALLS && !failed ->
    send_buffer[0] = call;
    send_buffer[1] = call;
    lent = true;
    enter(0);
    refused = failed;
    if
    :: !failed ->
      if
      :: (call - 1) - head < DEPTH
      OR_ABORTED
      fi
    :: else
    fi;
    if
    :: !failed && way_of[call] == BY_PUT ->
      if
#ifdef NO_CALL_NUMBER
      :: announced != 0
#else
      :: announced == call
#endif
      OR_ABORTED
      fi;
      if
      :: !failed ->
        target = announced_buffer;
        assert(MAY_TOUCH(owner[target] == call));
        receive_buffer[target].element[0] = call;
        assert(MAY_TOUCH(owner[target] == call));
        receive_buffer[target].element[1] = call
      :: else
      fi
    :: else
    fi;
    if
    :: !failed ->
      slot[(call - 1) % DEPTH].way = way_of[call];
      slot[(call - 1) % DEPTH].element[0] = (way_of[call] == BY_SLOT -> call : 0);
      slot[(call - 1) % DEPTH].element[1] = (way_of[call] == BY_SLOT -> call : 0);
      tail = call
    :: else
    fi;
#ifndef NO_WAIT_FOR_LENT
    if
    :: !failed && way_of[call] == BY_GET ->
      if
      :: head >= call
      OR_ABORTED
      fi
    :: else
    fi;
#endif
    if
    :: failed -> leave(0)
    :: else -> inside[0] = false
    fi;
    lent = false;
    send_buffer[0] = 0; /* the user's */
    send_buffer[1] = 0;
    call++
  :: else -> break
  od;
  target = 0
}

/* Element i of the message. */
inline receive(i) {
  if
  :: slot[(call - 1) % DEPTH].way == BY_SLOT ->
    receive_buffer[mine].element[i] = slot[(call - 1) % DEPTH].element[i]
  :: slot[(call - 1) % DEPTH].way == BY_GET ->
    assert(MAY_TOUCH(lent && send_buffer[i] == call));
    receive_buffer[mine].element[i] = send_buffer[i]
  :: else
  fi
}

inline announce() {
#ifdef NUMBER_FIRST
  announced = call;
  announced_buffer = mine
#else
  announced_buffer = mine;
  announced = call /* release */
#endif
}

proctype receiver() {
  byte call = 1, mine;
  bool failed, refused;
  do
  :: call <= CALLS && !failed ->
    mine = call % 2;
    owner[mine] = call;
#ifdef ANNOUNCED_BEFORE_LOOK
    announce();
#endif
    enter(1);
    refused = failed;
    if
    :: !failed ->
#ifndef ANNOUNCED_BEFORE_LOOK
      announce();
#endif
      if
      :: tail >= call
      OR_ABORTED
      fi
    :: else
    fi;
    if
    :: !failed ->
#ifdef HEAD_FIRST
      head = call;
#endif
      receive(0);
      receive(1);
      head = call /* release */
    :: else
    fi;
#if defined ABORT && !defined NO_LAST_LOOK
    failed = failed || aborted;
#endif
    if
    :: failed -> leave(1)
    :: else ->
      inside[1] = false;
      assert(receive_buffer[mine].element[0] == call && receive_buffer[mine].element[1] == call)
    fi;
    owner[mine] = 0;
    receive_buffer[mine].element[0] = 0; /* the user's */
    receive_buffer[mine].element[1] = 0;
    call++
  :: else -> break
  od
}

#ifdef ABORT
proctype aborter() {
  aborted = true
}
#endif

init {
  byte call;
  atomic {
    do
    :: call < CALLS ->
      call++;
      if
      :: way_of[call] = BY_SLOT
      :: way_of[call] = BY_GET
      :: way_of[call] = BY_PUT
      fi
    :: else -> break
    od;
    run sender();
    run receiver();
#ifdef ABORT
    run aborter()
#endif
  }
}
