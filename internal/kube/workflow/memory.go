package workflow

import (
	"time"

	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/kube/recovery"
	"htc.cern.ch/htcd/internal/output"
)

// record is what is known of a workflow besides the ledger.
type record = reconciler.Record[remembered]

// remembered is the part of it that only workflows have.
type remembered struct {
	sought   recovery.Key // an intent that is not open, as HTCondor has said, though the status tells of an end
	took     output.Room  // by a fetch that was broken off for lack of space
	part     time.Time    // when output of a DAG that goes on was last fetched
	parted   int          // how many of its nodes had ended then
	paging   bool         // there may be more of it
	dropping dropping

	unmeasured bool      // there are results that measured does not have
	rests      time.Time // no metrics are summed up before this
	measured   measured
	ignored    string // what was wrong with results, and is in an Event

	repeats struct { // what rules want repeated when this DAG has ended
		uid          string
		dag, attempt int
		all          []repeatable
		spent        string
	}
}
