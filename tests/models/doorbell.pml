/* Sleep and wake: one thread that drives operations of several communicators and sleeps on all their doorbells.
 *
 * Stands for src/transport/wait.c (sleep_or_arm, pccl_busy), src/transport/member.h (pccl_end_flush,
 * pccl_member_notify, pccl_full_fence) and src/transport/board.c (pccl_board_ring, pccl_board_abort), for ranks that
 * are oversubscribed or drive several communicators, where peers ring behind a full fence. With COMMS=1 and no user
 * thread it is the blocking call of one rank (pccl_idle). With more it is the progress thread, which arms every active
 * communicator, polls all once more, and sleeps on all bells and on a local `wake` that enqueuing threads count up
 * (futex_waitv; here: it sleeps until one of the values has changed).
 *
 * Memory is that of x86, the weakest order that matters here: a store waits in its thread's buffer, in order, until it
 * becomes visible, possibly after later loads; a full fence and a read-modify-write wait for the buffer to be empty.
 * Sleeping has no time limit in the model (it has in the code), so a lost wake-up is a deadlock.
 *
 * right: COMMS=1
 * right: COMMS=1 ABORT
 * right: COMMS=1 USER ABORT
 * right: COMMS=2 USER
 * right: COMMS=2 USER ABORT
 * wrong: COMMS=1 NO_ARM_FENCE invalid end state
 * wrong: COMMS=1 NO_RING_FENCE invalid end state
 * wrong: COMMS=1 NO_POLL_AFTER_ARMING invalid end state
 * wrong: COMMS=1 BELL_READ_LAST invalid end state
 * wrong: COMMS=1 BELL_FIRST invalid end state
 * wrong: COMMS=1 ABORT DEAF invalid end state
 * wrong: COMMS=2 USER ARM_ONE invalid end state
 * wrong: COMMS=2 USER WAKE_READ_LAST invalid end state
 * wrong: COMMS=2 USER NO_ARM_FENCE invalid end state
 * wrong: COMMS=2 USER ABORT ABORT_RINGS_ONE invalid end state
 */
#if COMMS > 1
#define OPERATIONS 1 /* of each communicator; an operation ends with one message of its peer */
#else
#define OPERATIONS 2
#endif

/* What others see: a rank's cell on each communicator's board, the tail of its connection there, the notice. */
bool sleeping[COMMS];
byte tail[COMMS];
bool aborted;
/* In this process: the queue of each communicator. */
byte enqueued[COMMS];
/* The bells, and the word that an enqueuing thread counts up, are only compared with what they were when they were
 * read: here they say whether they have been counted up since. */
bool rung[COMMS], wake;

/* Stores under way: of the progress thread to `sleeping`, and of a peer to `tail` where it has no fence. A peer's other
 * stores need no buffer here: it loads nothing between them and its next fence or read-modify-write. */
chan mine = [4] of {byte, byte};
chan tails = [OPERATIONS] of {byte, byte};

active proctype memory() {
  byte comm, value;
end:
  do
  :: atomic { mine?comm, value -> sleeping[comm] = value; comm = 0; value = 0 }
#ifdef NO_RING_FENCE
  :: atomic { tails?comm, value -> tail[comm] = value; comm = 0; value = 0 }
#endif
  od
}

/* pccl_board_ring(); the futex call comes with the new value of the bell. */
inline ring(comm) {
#ifdef BELL_FIRST
  rung[comm] = true;
  sleeping[comm] = false
#else
  sleeping[comm] = false;
  rung[comm] = true /* read-modify-write with release */
#endif
}

/* A peer sends a message for each operation and rings if we seem to sleep. There is a slot for each. */
proctype peer(byte comm) {
  byte sent;
  do
  :: sent < OPERATIONS ->
    sent++;
#ifdef NO_RING_FENCE
    tails!comm, sent;
#else
    tail[comm] = sent;
#endif
    if
    :: sleeping[comm] -> ring(comm)
    :: else
    fi
  :: sent == OPERATIONS -> break
#ifdef ABORT
  :: sent < OPERATIONS -> break /* it never comes */
#endif
  od
}

proctype user() {
  byte issued[COMMS];
  do
  :: issued[0] < OPERATIONS -> issued[0]++; enqueued[0]++; wake = true /* read-modify-write; the thread's lock */
#if COMMS > 1
  :: issued[1] < OPERATIONS -> issued[1]++; enqueued[1]++; wake = true
  :: issued[0] == OPERATIONS && issued[1] == OPERATIONS -> break
#else
  :: issued[0] == OPERATIONS -> break
#endif
  od
}

#ifdef ABORT
/* A rank of communicator 0 aborts all communicators of ours, each with its notice (abort.pml has its writing). */
proctype aborter() {
  aborted = true;
  rung[0] = true; /* read-modify-write: also a full fence */
#if COMMS > 1 && !defined ABORT_RINGS_ONE
  rung[1] = true
#endif
}
#endif

byte ended[COMMS];  /* operations of ours */
byte listed[COMMS]; /* how many the progress thread has taken from the queue */

/* A round: takes what is new in the queues, and moves what can move. Each look is a step of its own. */
inline poll(comm) {
  if
  :: atomic { listed[comm] != enqueued[comm] -> listed[comm] = enqueued[comm]; moved = true }
  :: listed[comm] == enqueued[comm]
  fi;
  if
  :: atomic { ended[comm] < listed[comm] && tail[comm] > ended[comm] -> ended[comm]++; moved = true }
  :: else
  fi
}

#define ACTIVE(c) (ended[c] < listed[c])
#if COMMS > 1
#define ALL_ENDED (ended[0] == OPERATIONS && ended[1] == OPERATIONS)
#define RUNG ((ACTIVE(0) && rung[0]) || (ACTIVE(1) && rung[1]) || wake)
#else
#define ALL_ENDED (ended[0] == OPERATIONS)
#define RUNG ((ACTIVE(0) && rung[0]) || wake)
#endif

/* Reads the bell first: what is rung from now on ends the sleep. */
inline arm(comm) {
  if
#ifdef ARM_ONE
  :: ACTIVE(comm) && comm == 0 ->
#else
  :: ACTIVE(comm) ->
#endif
#ifndef BELL_READ_LAST
    rung[comm] = false;
#endif
    mine!comm, 1
  :: else
  fi
}

/* pccl_busy(). */
inline disarm() {
  if
  :: armed ->
    mine!0, 0;
#if COMMS > 1
    mine!1, 0;
#endif
    armed = false
  :: else
  fi
}

proctype progress() {
  bool armed, moved;
  do
  :: ALL_ENDED -> break
  :: else ->
    moved = false;
    poll(0);
#if COMMS > 1
    poll(1);
#endif
    if
    :: moved -> disarm()
#ifdef DEAF
    :: !moved && aborted && !armed -> break
#else
    :: !moved && aborted -> break /* pccl_idle() looks at the notice before it arms and before it sleeps */
#endif
    :: else ->
      if
      :: !armed || RUNG ->
#ifndef WAKE_READ_LAST
        wake = false;
#endif
        arm(0);
#if COMMS > 1
        arm(1);
#endif
#ifndef NO_ARM_FENCE
        empty(mine);
#endif
        armed = true;
#ifdef NO_POLL_AFTER_ARMING
        RUNG
#endif
      :: else ->
#ifdef BELL_READ_LAST
        rung[0] = false;
#endif
#ifdef WAKE_READ_LAST
        wake = false;
#endif
        RUNG /* sleeps */
      fi
    fi
  od;
  assert(ALL_ENDED || aborted)
}

init {
  atomic {
    run peer(0);
#if COMMS > 1
    run peer(1);
#endif
#ifdef USER
    run user();
#else
    enqueued[0] = OPERATIONS;
#endif
#ifdef ABORT
    run aborter();
#endif
    run progress()
  }
}
