/* The abort notice: who finds a failure first writes it; everybody else's wait ends with its text, also a sleeper's.
 *
 * Stands for src/transport/board.c (pccl_board_abort, pccl_board_error) and src/transport/wait.c (pccl_idle,
 * sleep_or_arm). The text has two parts, which carry the number of their writer. Rank 0 finds a failure, the others
 * may find one at any moment, and else wait for a message that never comes. Sleeping has no time limit, so a lost
 * wake-up is a deadlock.
 *
 * DIES: a writer's process may be killed anywhere in the notice. Then the others need the limits of their waits
 * (`timeout` of SPIN: when nothing else can move): a sleeper wakes after a while, looks at its peers and finds the dead
 * one, and who finds a notice that is never finished gives up and says so without the text.
 *
 * right:
 * right: DIES
 * wrong: NO_COMPARE assertion violated
 * wrong: READ_AT_ONE assertion violated
 * wrong: BELL_FIRST invalid end state
 * wrong: CHECK_BEFORE_ARMING invalid end state
 * wrong: RING_ONE invalid end state
 * wrong: DIES NO_LIMITS invalid end state
 */
#define RANKS 3

byte aborted;  /* 0: no; 1: somebody writes; 2: written */
byte text[2];  /* 1 + the writer */
byte writer;   /* 1 + the rank that found the failure first; the model's */
bool rung[RANKS]; /* the bell has been counted up since its owner read it */
bool dead;

#ifdef DIES
#define MAY_DIE if :: skip :: !dead -> dead = true; goto killed fi;
#else
#define MAY_DIE skip;
#endif

inline ring_all() {
  other = 0;
  do
#ifdef RING_ONE
  :: other < RANKS - 1 -> rung[other] = true; other++
  :: other == RANKS - 1 -> other = 0; break
#else
  :: other < RANKS -> rung[other] = true; other++
  :: other == RANKS -> other = 0; break
#endif
  od
}

/* pccl_board_abort(). */
inline abort() {
  MAY_DIE
#ifdef BELL_FIRST
  ring_all();
#endif
#ifdef NO_COMPARE
  first = (aborted == 0);
  if :: first -> aborted = 1 :: else fi;
#else
  atomic { first = (aborted == 0); if :: first -> aborted = 1; writer = 1 + me :: else fi };
#endif
  if
  :: first ->
    MAY_DIE
    text[0] = 1 + me;
    text[1] = 1 + me;
    MAY_DIE
    aborted = 2 /* release */
  :: else
  fi;
  MAY_DIE
#ifndef BELL_FIRST
  ring_all()
#endif
}

proctype rank(byte me) {
  byte other, part[2];
  bool first, armed;
  do
  :: true -> abort(); break /* a failure */
  :: me > 0 -> /* a fruitless round: pccl_idle() */
#ifdef CHECK_BEFORE_ARMING
    if
    :: aborted != 0 && !armed -> break
    :: else
    fi;
#else
    if
    :: aborted != 0 -> break
    :: else
    fi;
#endif
    if
    :: !armed || rung[me] -> rung[me] = false; armed = true /* polls once more */
    :: else ->
      if
      :: rung[me] /* sleeps */
#if defined DIES && !defined NO_LIMITS
      :: timeout -> assert(dead); abort(); break
#endif
      fi
    fi
  od;
  /* pccl_board_error() */
#ifdef READ_AT_ONE
  aborted != 0;
#else
  if
  :: aborted == 2
#if defined DIES && !defined NO_LIMITS
  :: timeout -> assert(dead); goto killed /* "the communicator was aborted" */
#endif
  fi;
#endif
  part[0] = text[0];
  part[1] = text[1];
  assert(part[0] != 0 && part[0] == part[1]);
#ifndef NO_COMPARE
  assert(part[0] == writer);
#endif
killed:
  skip
}

init {
  atomic {
    run rank(0);
    run rank(1);
    run rank(2)
  }
}
