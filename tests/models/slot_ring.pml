/* A connection: one sender, one receiver, a ring of slots with two counters, over calls of different geometry.
 *
 * Stands for src/transport/transport.h (pccl_end: tail, head, count, cached), src/executor/messages.h (has_credit,
 * ready, drained, message_arrived, slot_of) and src/executor/execute.c (publish).
 *
 * The ring's memory has MEMORY cells; a geometry of depth D cuts it into D slots of MEMORY / D cells, and a message is
 * written and read cell by cell. Stores with release and loads with acquire keep the order of the program, which is the
 * order of the steps here; each twin takes one such order or one check away. Each side's calls follow one another, and
 * nothing else keeps the ranks together, so the sender may be calls ahead. Polling is waiting for a change.
 *
 * right:
 * right: ABORT
 * wrong: TAIL_FIRST assertion violated
 * wrong: HEAD_FIRST assertion violated
 * wrong: NO_CREDIT assertion violated
 * wrong: NO_DRAIN assertion violated
 * wrong: NO_RELOAD invalid end state
 * wrong: ABORT DEAF invalid end state
 */
#define MEMORY 4
#define CALLS 4
#define PER_CALL 3
#define MESSAGES 12

byte depth_of[CALLS]; /* of the rings in each call; all ranks compute the same */
byte memory[MEMORY];  /* message m is m + 1 in every cell of its slot */
byte tail, head;
bool aborted;

#ifdef ABORT
#define ENDED aborted
#ifdef DEAF
#define OR_ABORTED
#else
#define OR_ABORTED :: aborted -> goto ended
#endif
#else
#define ENDED false
#define OR_ABORTED
#endif

inline write_slot(m, depth, cell) {
  cell = (m % depth) * (MEMORY / depth);
  do
  :: cell < (m % depth + 1) * (MEMORY / depth) -> memory[cell] = m + 1; cell++
  :: else -> break
  od
}

inline read_slot(m, depth, cell) {
  cell = (m % depth) * (MEMORY / depth);
  do
  :: cell < (m % depth + 1) * (MEMORY / depth) -> assert(memory[cell] == m + 1); cell++
  :: else -> break
  od;
  cell = 0
}

proctype sender() {
  byte call, sent, count, cached, depth, cell;
  do
  :: call < CALLS ->
    sent = 0;
    do
    :: sent < PER_CALL ->
      /* ready(): the geometry stays, or the ring is drained */
      do
      :: depth == depth_of[call] -> break
#ifdef NO_DRAIN
      :: depth != depth_of[call] -> depth = depth_of[call]
#else
      :: depth != depth_of[call] && head == count -> cached = count; depth = depth_of[call]
#endif
      OR_ABORTED
      od;
      /* has_credit() */
      do
#ifdef NO_CREDIT
      :: break
#endif
      :: count - cached < depth -> break
#ifndef NO_RELOAD
      :: count - cached >= depth && head != cached -> cached = head
#endif
      OR_ABORTED
      od;
#ifdef TAIL_FIRST
      tail = count + 1;
      write_slot(count, depth, cell);
#else
      write_slot(count, depth, cell);
      tail = count + 1; /* release */
#endif
      cell = 0;
      count++;
      sent++
    :: else -> break
    od;
    call++
  :: else -> break
  od;
ended:
  assert(count == MESSAGES || ENDED)
}

proctype receiver() {
  byte call, received, count, cached, cell;
  do
  :: call < CALLS ->
    received = 0;
    do
    :: received < PER_CALL ->
      do
      :: cached > count -> break
      :: cached <= count && tail != cached -> cached = tail
      OR_ABORTED
      od;
#ifdef HEAD_FIRST
      head = count + 1;
      read_slot(count, depth_of[call], cell);
#else
      read_slot(count, depth_of[call], cell);
      head = count + 1; /* release */
#endif
      count++;
      received++
    :: else -> break
    od;
    call++
  :: else -> break
  od;
ended:
  assert(count == MESSAGES || ENDED)
}

#ifdef ABORT
/* The peer may also have died at any moment: it then never comes. The notice (abort.pml) ends the other side. */
proctype aborter() {
  aborted = true
}
#endif

init {
  byte call;
  atomic {
    do
    :: call < CALLS ->
      if
      :: depth_of[call] = 1
      :: depth_of[call] = 2
      :: depth_of[call] = 4
      fi;
      call++
    :: else -> break
    od;
#ifdef ABORT
    /* Any side may be missing. */
    if
    :: run sender(); run receiver()
    :: run sender()
    :: run receiver()
    fi;
    run aborter()
#else
    run sender();
    run receiver()
#endif
  }
}
