package push

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
)

// Item is something that is to be pushed.
type Item struct {
	ledger.Written
	Run       ledger.Run
	Reference string // to which it goes
	What      string // for messages: "model.pt of job 1.0"
	At        output.Attempt
	Dir       string // of the job or node, in that of the attempt
	Owner     string // of the artifact; its digest is then recorded before it is pushed. Empty: nobody deletes it
}

// Subject is what has outputs that are pushed.
type Subject interface {
	// Next returns the next item for a key, by the numbers of outputs beginning with one; ledger.ErrNotFound if there
	// is none.
	Next(tx *ledger.Tx, key string, from int) (Item, error)
	// Unpushed lists the runs with items.
	Unpushed(tx *ledger.Tx) ([]ledger.Run, error)
	// Wanted reports whether a run's outputs are still to be pushed: nothing newer has taken its place.
	Wanted(tx *ledger.Tx, run ledger.Run) (bool, error)
}

// HTCJobs are a Subject: of each the newest run is pushed.
type HTCJobs struct{}

// Next implements Subject.
func (HTCJobs) Next(tx *ledger.Tx, key string, from int) (Item, error) {
	run, err := newest(tx, key)
	if err != nil {
		return Item{}, err
	}
	w, err := tx.NextPush(run.UID, run.Attempt, from)
	if err != nil {
		return Item{}, err
	}
	p, err := tx.Proc(run.UID, run.Attempt, w.Proc)
	return Item{
		Written: w, Run: run, Reference: of(w.Artifact, w.Proc), What: fmt.Sprintf("%s of job %s", w.Path, p.JobID()),
		At: output.Attempt{Namespace: run.Namespace, Name: run.Name, Number: run.Attempt}, Dir: strconv.Itoa(w.Proc),
	}, err
}

// Unpushed implements Subject.
func (HTCJobs) Unpushed(tx *ledger.Tx) ([]ledger.Run, error) { return tx.UnpushedRuns() }

// Wanted implements Subject.
func (HTCJobs) Wanted(tx *ledger.Tx, run ledger.Run) (bool, error) {
	now, err := newest(tx, run.Namespace+"/"+run.Name)
	if errors.Is(err, ledger.ErrNotFound) {
		return false, nil
	}
	return now.UID == run.UID && now.Attempt == run.Attempt, err
}

// newest returns the newest run of an HTCJob.
func newest(tx *ledger.Tx, key string) (ledger.Run, error) {
	namespace, name, _ := strings.Cut(key, "/")
	runs, err := tx.Runs(ledger.RunFilter{Namespace: namespace, Name: name})
	if err == nil && len(runs) == 0 {
		err = ledger.ErrNotFound
	}
	if err != nil {
		return ledger.Run{}, err
	}
	return runs[len(runs)-1], nil
}
