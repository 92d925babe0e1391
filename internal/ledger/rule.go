package ledger

import (
	"time"
)

// RuleState is what a rule of a workflow has done in an attempt.
type RuleState struct {
	Rule          int // in spec.rules, from 0
	Action        string
	Holds         bool      // its condition held when it was last looked at
	Acts          int       // how often it has acted
	Acted         time.Time // when it last did
	DAG           int       // the Attempt of the Run that it then acted on
	MaxConcurrent int       // what it then made of spec.sequences.maxConcurrent; 0: nothing
	Applied       bool      // that DAG keeps to it
	Message       string    // of the Event about it
	Told          bool      // there was that Event
}

// RuleStates returns those of the rules that were looked at, in their order. The run is the attempt's first.
func (tx *Tx) RuleStates(uid string, attempt int) (all []RuleState, err error) {
	defer wrap(&err, "rules of run %s attempt %d", uid, attempt)
	return list(tx, into(func(s *RuleState) []any {
		return []any{
			&s.Rule,
			&s.Action,
			&s.Holds,
			&s.Acts,
			(*moment)(&s.Acted),
			&s.DAG,
			&s.MaxConcurrent,
			&s.Applied,
			&s.Message,
			&s.Told,
		}
	}), `SELECT rule, action, holds, acts, acted, dag, maxConcurrent, applied, message, told FROM rules WHERE run = `+runID+` ORDER BY rule`, uid, attempt)
}

// SetRuleState writes one of them.
func (tx *Tx) SetRuleState(uid string, attempt int, s RuleState) (err error) {
	defer wrap(&err, "rule %d of run %s attempt %d", s.Rule, uid, attempt)
	return tx.change(
		`INSERT OR REPLACE INTO rules (run, rule, action, holds, acts, acted, dag, maxConcurrent, applied, message, told)
		SELECT id, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM runs WHERE uid = ? AND attempt = ?`,
		s.Rule,
		s.Action,
		s.Holds,
		s.Acts,
		millis(s.Acted),
		s.DAG,
		s.MaxConcurrent,
		s.Applied,
		s.Message,
		s.Told,
		uid,
		attempt,
	)
}

// TellRule records that there was an Event about what a rule has done.
func (tx *Tx) TellRule(uid string, attempt int, s RuleState) error {
	return tx.markRule(`UPDATE rules SET told = 1`, uid, attempt, s)
}

// ApplyRule records that the DAG keeps to what a rule has made of maxConcurrent.
func (tx *Tx) ApplyRule(uid string, attempt int, s RuleState) error {
	return tx.markRule(`UPDATE rules SET applied = 1`, uid, attempt, s)
}

// markRule changes a state unless the rule has acted again.
func (tx *Tx) markRule(set, uid string, attempt int, s RuleState) (err error) {
	defer wrap(&err, "rule %d of run %s attempt %d", s.Rule, uid, attempt)
	_, err = tx.exec(set+` WHERE run = `+runID+` AND rule = ? AND acts = ?`, uid, attempt, s.Rule, s.Acts)
	return err
}
