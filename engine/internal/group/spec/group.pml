/* The hand-over of one partition of an assigned group: the coordinator of ../assigned.go, the lanes of the engine that own
 * the partition one after the other, and how the engine carries out the coordinator's actions (the comment of group.Word).
 *
 * How to run:
 *
 *	spin -a group.pml && gcc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m200000
 *
 * and for "everything is processed in the end", under weak fairness:
 *
 *	spin -a -DLTL group.pml && gcc -O2 -DNFAIR=4 -DCOLLAPSE -o pan pan.c && ./pan -a -f -m200000
 *
 * Options for spin: -DM= members, -DLEN= records, -DEV= events, and -DMUT= plants one of the faults below, each of which
 * must be found. "go test" does all of it (spec_test.go). Keep model and code in step.
 *
 * What is modelled: the state machine under the group's lock (word, plan, members), one lane for each ownership, deadlines
 * that may strike at any moment, members that join, leave and are put out, plans that change in the middle of a move,
 * positions that are set back. A lane loads the word without the lock, so a look and what follows are two steps. What is
 * not: several partitions (they do not know each other), the grace time of static members (a plan like any other), failing
 * handlers.
 *
 * What must hold:
 *	one owner	no two lanes are in a handler at once, unless the older one's ownership was lost
 *	no zombie	no handler begins once the next ownership has been started
 *	pairs		each ownership ends once, and is lost by deadline only while it is being revoked
 *	handled		everything below the position went through a handler to its end
 *	no step back	the next owner begins where the group stands, and nothing is committed after that by the one before
 *	no repeats	without a loss or a reset no record is delivered twice
 *	members only	nobody who is not in the group is given the partition
 *	converges	no state is stuck: in the end all records are processed
 */
#ifndef MUT
#define MUT 0
#endif
#ifndef M
#define M 2
#endif
#ifndef LEN
#define LEN 2
#endif
#ifndef EV
#define EV 2
#endif
#define T (EV + 2)	/* ownerships at most */
#define NONE 15

/* Planted faults:
 *  1  a new ownership has the generation of the one before
 *  2  the partition is handed on without waiting for its owner
 *  3  a commit looks at the word and then stores
 *  4  the position is taken over before it is sealed
 *  5  a fence does not wait for a lane that is about to deliver
 *  6  a lane looks at the word before it says that it is about to deliver
 *  7  Released is accepted from an earlier ownership of the same member
 *  8  a lane gives back before it commits
 *  9  a deadline strikes an ownership that it was not set for
 * 10  a lane commits before it handles
 * 11  a partition that has been given back is not handed on
 * 12  the plan is not made anew when a member is put out
 * 13  a reset does not end the ownership
 */

/* Under the group's lock. Owner, gen and revoking are one word, which lanes load without it. */
bool lock;
byte owner = NONE, gen;
bool revoking;
byte target = NONE;
bool up[M];
bool armed;		/* a deadline is set */
byte events;

/* By ownership, in the order of their starts. */
byte started;
byte cell[T];		/* its committed position, and */
bool sealed[T];		/* its seal: one word, moved by CAS */
bool aboutTo[T];	/* the lane's phase */
bool inHandler[T];
bool lost[T];
bool over[T];

byte floor;		/* where the next one begins */
byte seen;		/* bit i: record i went through a handler to its end */
bool repeats;		/* there was a loss or a reset: records may be delivered again */

inline acquire() { atomic { !lock -> lock = true } }
inline release() { lock = false }

#define CURRENT (started - 1)

/* ends the present ownership, in the machine */
inline endOwnership() {
	assert(!over[CURRENT]);
	over[CURRENT] = true;
	owner = NONE; revoking = false;
#if MUT != 1
	gen++;
#endif
#if MUT != 9
	armed = false
#endif
}

/* takes over the position of the present ownership: nothing is committed under it any more */
inline takeOver() {
#if MUT == 4
	floor = cell[CURRENT];
	sealed[CURRENT] = true
#else
	d_step { sealed[CURRENT] = true; floor = cell[CURRENT] }
#endif
}

/* Lost: the machine's step, and what the engine does */
inline lose() {
	atomic { lost[CURRENT] = true; repeats = true; endOwnership() };
	takeOver();
#if MUT != 5
	!aboutTo[CURRENT]
#endif
}

/* the next step of the partition towards its target: Assign or Revoke */
inline settle() {
	if
	:: atomic { owner == NONE && target != NONE ->
			assert(up[target]);
			assert(started == 0 || floor == cell[CURRENT] || floor == 0 && repeats);
			owner = target;
#if MUT != 1
			gen++;
#endif
			assert(started < T);
			cell[started] = floor;
			started++;
			run lane(owner, gen, CURRENT)
		}
	:: atomic { owner != NONE && owner != target && !revoking ->
#if MUT == 2
			endOwnership(); floor = cell[CURRENT];
			owner = target; gen++; cell[started] = floor; started++; run lane(owner, gen, CURRENT)
#else
			revoking = true; armed = true
#endif
		}
	:: else
	fi
}

/* Released, and what comes of it */
inline giveBack() {
	acquire();
	if
#if MUT == 7
	:: owner == me && revoking ->
#else
	:: owner == me && gen == g && revoking ->
#endif
		takeOver();
		atomic { endOwnership() };
#if MUT != 11
		settle()
#endif
	:: else
	fi;
	release()
}

/* what the engine's lane does for one ownership */
proctype lane(byte me, g, l) {
	byte pos, k;
	pos = cell[l];
	do
	:: pos == LEN ->
end:		!(owner == me && gen == g && !revoking);	/* nothing to do until it is asked for */
		break
	:: pos < LEN ->
#if MUT != 6
		aboutTo[l] = true;
#endif
		if
		:: owner == me && gen == g && !revoking -> skip
		:: else -> aboutTo[l] = false; break
		fi;
#if MUT == 6
		aboutTo[l] = true;
#endif
		atomic {
			inHandler[l] = true;
			aboutTo[l] = false;
			assert(l == CURRENT);				/* no zombie */
			assert(repeats || !(seen & (1 << pos)));	/* no repeats */
			k = 0;
			do
			:: k < started -> assert(k == l || !inHandler[k] || lost[k]); k++	/* one owner */
			:: else -> break
			od;
			k = 0
		};
#if MUT == 10
		atomic { if :: !sealed[l] -> cell[l] = pos + 1; assert((seen & ((1 << cell[l]) - 1)) == ((1 << cell[l]) - 1)) :: else fi };
#endif
		atomic { seen = seen | (1 << pos); inHandler[l] = false };
#if MUT == 3
		if
		:: owner == me && gen == g -> atomic { assert(l == CURRENT && !sealed[l]); cell[l] = pos + 1 }
		:: else -> break
		fi;
#elif MUT == 8
		if :: revoking -> giveBack() :: else fi;
		atomic { if :: !sealed[l] -> cell[l] = pos + 1 :: else -> break fi };
#elif MUT != 10
		atomic {
			if
			:: !sealed[l] ->
				assert(cell[l] == pos && l == CURRENT);	/* no step back */
				cell[l] = pos + 1;
				assert((seen & ((1 << cell[l]) - 1)) == ((1 << cell[l]) - 1))	/* handled */
			:: else -> break
			fi
		};
#endif
		pos++
	od;
	giveBack()
}

/* the plan without m */
inline another(m) {
	if
	:: up[(m + 1) % M] -> target = (m + 1) % M
	:: up[(m + 2) % M] -> target = (m + 2) % M	/* with two members, itself: it is not up */
	:: else -> target = NONE
	fi
}

/* everything else that happens to the group: up to EV times, and the deadline whenever there is one */
proctype world() {
	byte m;
	do
	:: events < EV ->
		atomic {
			!lock -> lock = true;
			events++;
			m = 0;
			do :: m < M - 1 -> m++ :: break od
		};
		if
		:: up[m] && target != m -> target = m; settle()			/* another plan */
		:: !up[m] -> up[m] = true; target = m; settle()			/* join */
		:: up[m] && target != m -> up[m] = false			/* leave, of one who is not in the plan */
		:: up[m] && target == m -> 					/* leave */
			atomic { up[m] = false; another(m) };
			settle()
		:: up[m] && owner == m ->					/* put out */
			atomic {
				up[m] = false;
#if MUT != 12
				if :: target == m -> another(m) :: else fi
#endif
			};
			lose();
			settle()
		:: owner == m ->						/* the position is set back */
#if MUT == 13
			atomic { repeats = true; cell[CURRENT] = 0; floor = 0 };
#else
			lose();
			floor = 0;
			settle()
#endif
		:: else								/* nothing that could happen to m */
		fi;
		release()
	:: armed ->							/* the deadline strikes */
		acquire();	/* it may have been answered meanwhile */
		if
		:: armed && owner != NONE -> assert(revoking); armed = false; lose(); settle()
		:: else -> armed = false
		fi;
		release()
	:: events == EV && !armed -> break
	od;
	acquire();
	if
	:: target == NONE -> atomic { up[0] = true; target = 0 }; settle()	/* somebody comes back */
	:: else
	fi;
	release();
	/* converges: whoever is the owner now gets to the end */
	owner != NONE && !revoking && cell[CURRENT] == LEN
}

init {
	byte i;
	atomic {
		i = 0;
		do :: i < M -> up[i] = true; i++ :: else -> break od;
		target = 0
	};
	acquire();
	settle();
	release();
	run world()
}

#ifdef LTL
ltl converges { <> (events == EV && owner != NONE && !revoking && cell[CURRENT] == LEN) }
#endif
