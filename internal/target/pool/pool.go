// Package pool decides by which HTCPool an HTCJob is sent, and what that adds to it. It is pure: what it decides from
// is given to it.
package pool

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// Pool is an HTCPool as far as it concerns an attempt that is sent by it. The zero value stands for htcd's flags alone.
type Pool struct {
	Name string
	Spec v1alpha1.HTCPoolSpec
}

// of returns what of an HTCPool is written down with an attempt. Whether it is the default, who may use it, its state
// and its limits only matter before.
func of(p *v1alpha1.HTCPool) Pool {
	s := p.Spec // what it points to is shared with the informer, and never changed
	s.Default, s.NamespaceSelector, s.State, s.Limits = false, nil, "", nil
	return Pool{Name: p.Name, Spec: s}
}

// None reports whether htcd's flags alone decide.
func (p Pool) None() bool { return p.Name == "" }

// Snapshot returns the spec as the ledger keeps it, and its hash; both are empty without a pool.
func (p Pool) Snapshot() (hash, spec string) {
	if p.None() {
		return "", ""
	}
	text, err := json.Marshal(p.Spec)
	if err != nil {
		panic(fmt.Sprintf("a pool's spec cannot be written as JSON: %v", err)) // no value of the type can do that
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), string(text)
}

// read returns the pool of that name from what Snapshot returned.
func read(name, spec string) (Pool, error) {
	p := Pool{Name: name}
	if err := json.Unmarshal([]byte(spec), &p.Spec); err != nil {
		return p, fmt.Errorf("the recorded spec of HTCPool %s: %w", name, err)
	}
	return p, nil
}
