package ledger

import (
	"fmt"
	"time"
)

// Run is one sending of one HTCJob, or one DAG of a workflow: the row that is written before
// condor_submit starts and from then on decides whether something was sent.
type Run struct {
	Kind       Kind
	UID        string // of the HTCJob object
	Attempt    int    // counts from 1 for a UID; the DAGs of a workflow over all its attempts
	Namespace  string
	Name       string
	Generation int64 // of the spec that was sent
	State      RunState
	// CamelCase, of the last change of State; FactoryPaused: Message is why its factory makes no jobs
	Reason    string
	Message   string // for people
	Schedd    string // name of the schedd that has the cluster
	Cluster   int    // 0 until condor_submit named it
	Procs     int    // how many procs were requested of HTCondor
	TokenHash []byte // SHA-256 of the token its callbacks must carry
	TempDir   string // staging directory
	// only HTCondor decides how its jobs ended: it may run them again, or count another code as success
	Deferred  bool
	Unsent    bool // of an intent: its newest submission certainly left nothing at the schedd
	Restored  bool // recorded again after the ledger had lost it; its token is lost for good
	Confirmed bool // HTCondor itself has confirmed every proc's end
	Created   time.Time
	Submitted time.Time // zero until State is Submitted
	Ended     time.Time // zero while the run is open
	Checked   time.Time // last successful answer of the schedd about this run
	SpecHash  string    // of what was sent; empty: an older htcd sent it, see Generation
	Rerun     string    // the annotation's value when it began
	Stop      string    // why htcd ends it, CamelCase; empty: it does not
	Collector string    // of the pool it was sent to; empty: the usual one
	// name of the Secret it was sent with, in its namespace; empty: the usual one; "-": the common account's
	Secret       string
	InputsDigest string // of the content of spec.inputs; empty: there are none
	SecretInputs string // names of those from Secrets, separated by spaces: no output of these names is kept
	ItemsDigest  string // of the table that its items are from; empty: they are from none
	Pool         string // name of the HTCPool it was sent by; empty: none
	PoolSpec     string // hash of that pool's spec then, see PoolSpec
	Effective    string // JSON of v1alpha1.Effective: what its pool made of it; empty: it has none
	OutputDir    string // parent of the directories for its procs' output; empty: it is not fetched
	Account      string // the Owner of its jobs; empty: HTCondor has not said yet
	// when the first of its jobs first started, by HTCondor's clock; zero: none has, as far as is known
	Started  time.Time
	Finished time.Time // when the last of those that started ended, by HTCondor's clock; zero: not known
	// numbers of the procs that it sends, a procset, in the order of the cluster; empty: all, from 0
	Sent       string
	Jobs       int    // how many procs there are with those that were carried over; 0: as many as Procs
	KeptFailed int    // how many of those that were carried over have failed
	Usage      string // JSON of v1alpha1.Usage: what its jobs used; empty: not known
	// how many attempts of its workflow before it are no longer in the ledger, if it is the first that is
	Earlier int
	// how many jobs its factory keeps in HTCondor at a time, 0: there is no factory. An HTCJob's procs then get rows
	// once they are made, a DAG's nodes have theirs from the beginning
	Factory int
	// how many of these may wait for a slot, as HTCondor was told; IdleNotKnown: it is told again
	FactoryIdle int
	// how many of the last procs its factory does not make: they have failed, and have no rows; see EndUnmade
	Unmade int
}

// IdleNotKnown is a FactoryIdle: HTCondor is being told, or the ledger has lost what it was told.
const IdleNotKnown = -1

// All returns how many procs a run has, those that were carried over included.
func (r Run) All() int { return max(r.Procs, r.Jobs) }

// NodeProc returns the number of the proc that is a node of a DAG: each is a cluster of its own, unless a factory makes
// them.
func (r Run) NodeProc(node int) int {
	if r.Factory > 0 {
		return node
	}
	return 0
}

// FactoryPaused is the Reason of a run whose factory makes no more jobs for now.
const FactoryPaused = "FactoryPaused"

// Paused returns why the factory of a run's jobs makes no more of them for now, as HTCondor says, and its cluster; ""
// if it does or has made all.
func (r Run) Paused() string {
	if r.Reason == FactoryPaused {
		return r.Message
	}
	return ""
}

// PausedFor returns the run with another such reason.
func (r Run) PausedFor(why string) Run {
	r.Reason, r.Message = FactoryPaused, why
	if why == "" {
		r.Reason = ""
	}
	return r
}

// RunState is how far a run has got. It is stored as text.
type RunState string

const (
	Intent    RunState = "Intent"    // condor_submit may or may not have run: ask the schedd for the tag
	Submitted RunState = "Submitted" // the cluster is known and its procs have rows
	Refused   RunState = "Refused"   // HTCondor refused the description; final for this generation
	Removed   RunState = "Removed"   // a successful answer showed nothing of it alive
)

// Kind is what a run is of. It is stored as text.
type Kind string

const (
	HTCJobs   Kind = ""
	Workflows Kind = "workflow" // its only proc is DAGMan's job
)

// ofHTCJobs is true for the runs of HTCJobs. Kinds are written out, so that indexes can serve.
const ofHTCJobs = `kind = ''`

// RunFilter narrows Runs; the zero value means every run of HTCJobs.
type RunFilter struct {
	Kind        Kind
	Namespace   string   // empty: any
	Name        string   // empty: any
	State       RunState // empty: any
	Unconfirmed bool     // only runs that are not Confirmed
}

// InsertRun adds a run; ErrExists if its UID already has that attempt.
func (tx *Tx) InsertRun(r Run) (err error) {
	defer wrap(&err, "insert run %s attempt %d", r.UID, r.Attempt)
	n, err := tx.exec(insertRunText, valuesOf(r.columns())...)
	if err == nil && n == 0 {
		err = ErrExists
	}
	return err
}

// UpdateRun writes everything of a run except its key (UID, Attempt, Namespace, Name), Kind, Created and Unmade;
// ErrNotFound if there is no such run. The rows of its procs are not changed.
func (tx *Tx) UpdateRun(r Run) (err error) {
	defer wrap(&err, "update run %s attempt %d", r.UID, r.Attempt)
	return tx.change(updateRunText, append(valuesOf(changing(r.columns())), r.UID, r.Attempt)...)
}

// Run returns one run, or ErrNotFound.
func (tx *Tx) Run(uid string, attempt int) (r Run, err error) {
	defer wrap(&err, "run %s attempt %d", uid, attempt)
	return scanRun(tx.queryRow(`SELECT `+runColumns+` FROM runs WHERE uid = ? AND attempt = ?`, uid, attempt))
}

// LatestRun returns the run of that UID with the highest attempt, or ErrNotFound.
func (tx *Tx) LatestRun(uid string) (r Run, err error) {
	defer wrap(&err, "latest run of %s", uid)
	return scanRun(tx.queryRow(`SELECT `+runColumns+` FROM runs WHERE uid = ? ORDER BY attempt DESC LIMIT 1`, uid))
}

// Runs returns the runs that match f, oldest first.
func (tx *Tx) Runs(f RunFilter) ([]Run, error) {
	where, args := ofHTCJobs, []any{}
	if f.Kind == Workflows {
		where = `kind = 'workflow'`
	}
	if f.Namespace != "" {
		where, args = where+` AND namespace = ?`, append(args, f.Namespace)
	}
	if f.Name != "" {
		where, args = where+` AND name = ?`, append(args, f.Name)
	}
	if f.State != "" {
		where, args = where+` AND state = ?`, append(args, string(f.State))
	}
	if f.Unconfirmed {
		where += ` AND confirmed = 0`
	}
	return tx.runsWhere("", where, args...)
}

// runsWhere returns the runs, of whatever kind, that satisfy a condition, oldest first; which says for errors what runs
// these are.
func (tx *Tx) runsWhere(which, where string, args ...any) (runs []Run, err error) {
	defer wrap(&err, "list runs%s", which)
	return list(tx, scanRun, `SELECT `+runColumns+` FROM runs WHERE `+where+` ORDER BY id`, args...)
}

// SentWith reports whether a run of that namespace, other than a refused one, was sent with the Secret; usual: also
// those that name none.
func (tx *Tx) SentWith(namespace, secret string, usual bool) (sent bool, err error) {
	defer wrap(&err, "look for runs with secret %s/%s", namespace, secret)
	err = tx.queryRow(
		`SELECT EXISTS (SELECT 1 FROM runs WHERE namespace = ? AND state <> ? AND (secret = ? OR ? AND secret = ''))`,
		namespace,
		string(Refused),
		secret,
		usual,
	).Scan(
		&sent,
	)
	return sent, err
}

// DeleteRuns deletes every run of that UID and the rows of its procs; no run is no error.
func (tx *Tx) DeleteRuns(uid string) error {
	if _, err := tx.exec(`DELETE FROM runs WHERE uid = ?`, uid); err != nil {
		return fmt.Errorf("delete runs of %s: %w", uid, err)
	}
	return tx.ForgetOrphan(uid)
}

var scanRun = into(func(r *Run) []any { return valuesOf(r.columns()) })

// millis is a time as stored in the file: Unix milliseconds, 0 for the zero time.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
