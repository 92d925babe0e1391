package ledger

import (
	"strings"
	"time"
)

// Past is what the ledger says of an attempt, also after its object and its rows are gone.
type Past struct {
	Kind                    Kind
	Namespace, Name, UID    string
	Attempt                 int
	Account                 string // the Owner of its jobs; empty: HTCondor has not said
	Pool                    string // name of the HTCPool it was sent by; empty: none
	Schedd                  string
	Cluster                 int // 0: HTCondor never had it, as far as is known
	State                   RunState
	Reason                  string
	Created, Submitted      time.Time
	Started, Finished       time.Time // of the first and of the last of its jobs, by HTCondor's clock
	Ended                   time.Time // zero: it had not ended when its rows were deleted, or has not ended yet
	Usage                   string    // JSON of v1alpha1.Usage; empty: not known
	Gone                    time.Time // when its rows were deleted; zero: they are there
	Jobs, Succeeded, Failed int       // an HTCWorkflow's are its nodes
}

// PastFilter narrows History; the zero value means everything.
type PastFilter struct {
	Namespace string // empty: any
	Since     time.Time
	Before    *PastKey // only what comes after it in the list
	Limit     int      // most of them; 0: all
}

// PastKey is where an attempt stands in the list.
type PastKey struct {
	Created time.Time
	UID     string
	Attempt int
}

// Key is where this one stands.
func (p Past) Key() PastKey { return PastKey{p.Created, p.UID, p.Attempt} }

const pastColumns = `kind, namespace, name, uid, attempt, account, pool, schedd, cluster, state, reason,
	created, submitted, started, finished, ended, usage, gone, jobs, succeeded, failed`

// History returns the attempts that match f, of both kinds, the newest first. What is there and what is gone is read by
// an index each, so a page costs the same however many there are.
func (tx *Tx) History(f PastFilter) (all []Past, err error) {
	defer wrap(&err, "list the history")
	where, args := []string{"created >= ?"}, []any{millis(f.Since)}
	if f.Namespace != "" {
		where, args = append(where, "namespace = ?"), append(args, f.Namespace)
	}
	if f.Before != nil {
		where = append(where, "(created, uid, attempt) < (?, ?, ?)")
		args = append(args, millis(f.Before.Created), f.Before.UID, f.Before.Attempt)
	}
	limit := -1
	if f.Limit > 0 {
		limit = f.Limit
	}
	part := func(from string) string {
		return `SELECT ` + pastColumns + ` FROM ` + from + ` WHERE ` + strings.Join(where, " AND ")
	}
	return list(tx, into(func(p *Past) []any {
		return []any{
			&p.Kind,
			&p.Namespace,
			&p.Name,
			&p.UID,
			&p.Attempt,
			&p.Account,
			&p.Pool,
			&p.Schedd,
			&p.Cluster,
			&p.State,
			&p.Reason,
			(*moment)(
				&p.Created,
			),
			(*moment)(&p.Submitted),
			(*moment)(&p.Started),
			(*moment)(&p.Finished),
			(*moment)(&p.Ended),
			&p.Usage,
			(*moment)(&p.Gone),
			&p.Jobs,
			&p.Succeeded,
			&p.Failed,
		}
	}), part("attempts")+` UNION ALL `+part("history")+` ORDER BY created DESC, uid DESC, attempt DESC LIMIT ?`,
		append(append(args, args...), limit)...)
}

// WasSent reports whether there were attempts of an object, begun after that time, that were not refused and whose rows
// are gone.
func (tx *Tx) WasSent(namespace, uid string, since time.Time) (was bool, err error) {
	defer wrap(&err, "look whether %s was sent before", uid)
	err = tx.queryRow(`SELECT EXISTS (SELECT 1 FROM history WHERE namespace = ? AND created >= ? AND uid = ? AND state <> ?)`,
		namespace, millis(since), uid, string(Refused)).Scan(&was)
	return was, err
}

// forgetAtOnce is how many are forgotten in one Write, so that none waits for long.
const forgetAtOnce = 1000

// ForgetHistory deletes what is gone since before that time, and the oldest beyond so many; more: there is some left to
// delete. Rows come in the order in which they went, with consecutive numbers, so finding none costs a look at the
// first and at the last one.
func (tx *Tx) ForgetHistory(before time.Time, most int) (more bool, err error) {
	defer wrap(&err, "forget history")
	n, err := tx.exec(`DELETE FROM history WHERE rowid IN (SELECT rowid FROM history
			WHERE rowid <= (SELECT coalesce(max(rowid), 0) FROM history) - ?2
				OR rowid < coalesce((SELECT rowid FROM history WHERE gone >= ?1 ORDER BY rowid LIMIT 1), 9223372036854775807)
			ORDER BY rowid LIMIT ?3)`, millis(before), most, forgetAtOnce)
	return n == forgetAtOnce, err
}
