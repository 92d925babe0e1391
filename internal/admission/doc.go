// Package admission decides when an HTCJob may be sent. It does no I/O of its own.
//
//	limits, usage, an HTCJob ── Decide ──> it may be sent, has to wait, or never can be
//
//	Ask ──> line of the pool ── pass ──> may go ── Begun (its intent is in the ledger) ──> counted by the ledger alone
//	              ▲                        │
//	              └── Leave <──────────────┘ something else prevents it
//
// A pass lets everybody go whose turn it is and for whom there is room. It is made when an HTCJob asks, when something
// has changed in the ledger or in the pool, and when time alone makes room (newPerMinute). What is let go counts as
// used at once, so that several HTCJobs can be prepared and sent at the same time and the limits still hold.
//
// The first of the line holds up everybody behind it: an HTCJob as large as maxOpen is sent when the pool is empty.
// Only if its own namespace has no room does the turn pass to the next namespace, or if it does not fit beside jobs
// that wait for a slot or are on hold: these may stay for good.
//
// What one namespace has idle or on hold holds up itself alone: when such a limit is reached, a namespace with less
// than its share of it (the limit by the number of namespaces with open jobs) goes on, and of the pool's open jobs
// those of another namespace that idle or are held count up to its share, as do idle ones for limits of these, and
// waiting ones for those of cores and memory. An HTCJob that fits only when others' idle jobs have started has the next
// turn: until then nobody is let go beyond the share of the namespace. However many namespaces fill what is theirs, one
// after the other, all together have at most maxOpen times 1 + 1/2 + 1/3 + ...
//
// A factory is let go with one job, and is then granted its share of the limits. All that it may have is in use, since
// HTCondor makes its jobs without asking: nobody is let go into that room. It makes way for the first of the line as
// far as that one needs it, which takes until jobs of it have ended. One that had to give all has its share again
// before it makes way for the next.
//
// Adding up what is in use takes some 20 ms for 10,000 open runs in the ledger. It is done at most a tenth of the time
// and otherwise once a second; in between the last sum is used, which can only be too high.
package admission
