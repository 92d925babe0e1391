// Package backend knows the schedds that runs are sent to and the accounts that they are sent as. It knows no HTCJob.
//
//	endpoint   which schedd, in which pool (schedd.Endpoint)
//	account    whose credentials: those of a Secret, or the usual ones of a namespace
//	target     both: where a run is and whose it is; written to the ledger with the intent
//	identity   a ticket or a token of the account, for its endpoint: what a command runs as
//
//	wish ── Policy ──> target ── Chooser ──> target with a schedd, identity
//	run ── TargetOf ──> target ── Credentials ──> identity
//
// Runs are asked about in groups of one endpoint and one account. Answering wraps every command and knows which
// endpoints answer; Explain says what a command's error means. Prover checks credentials before they are needed, and
// Keeper keeps a namespace's Secret as long as it is needed.
package backend
