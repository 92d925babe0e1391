// Package ledger is the SQLite file in which htcd keeps what it sent to
// HTCondor and what became of it.
package ledger
