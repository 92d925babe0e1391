// Package ledger is the SQLite file in which htcd records what it sent to
// HTCondor, and its state. It decides nothing and knows neither HTCondor
// nor Kubernetes.
//
// # The tables
//
// htcjobs has one row per proc, except for those that a factory has not made, and is public: sites read it with the
// sqlite3 shell. Its first four columns (htcjobName, jobId, status, tempDir) mean what they meant to the first operator
// of this kind, whose files are continued: its rows, and its fifth column, stay as they are; they have no run, so
// nothing here ever finds or changes them. runs has one row per run, an HTCJob's UID and an attempt, and gives the
// procs their namespace:
//
//	SELECT namespace, jobId, status FROM htcjobs JOIN runs ON runs.id = htcjobs.run
//
// tallies counts the procs of each run by their state, so that Counts costs the
// same for 1 and for 100,000. Triggers keep it.
//
// items has the variables of each proc of a run whose procs differ in them, as texts that mean nothing here: blocks
// of 128, compressed, so that the text of one proc is found by reading a few KB.
//
// destinations has the outputs of a run that are written elsewhere, to URLs or to registries, and written what
// each proc has written there, or has still to: the work that survives a restart.
//
// history has the attempts whose rows were deleted, one row each, which a trigger writes. The view attempts shows the
// same of those that are there.
//
// # The life of a row
//
//	InsertRun     state Intent, cluster 0      before condor_submit starts
//	UpdateRun     state Submitted, cluster C   in one Write with
//	InsertProcs   rows C.0 to C.n-1, status 1  these
//	UpdateProc    status 4 or 7                as callbacks and cross-checks report
//	UpdateRun     ended, later confirmed       when the last proc has ended
//	DeleteRuns    all rows of the HTCJob       when the HTCJob is deleted
//
// An attempt that sends only some procs has its own rows of the others from the beginning: CarryProcs copies them, in
// one Write with InsertRun, from the attempt before. runs.sent says which number each proc of its cluster has, before
// anything is sent.
//
// A refused description ends at state Refused without procs.
//
// # What is durable when
//
// When Write has returned nil, everything its function did is on disk and
// survives a loss of power; when it has returned an error, or the process died
// before, nothing of it is there. There is no state in between, and Write never
// returns before it knows. Writes that arrive while the disk is busy share the
// next commit, so that many callbacks need few waits for the disk. Only
// unacknowledged writes are lost with the process.
//
// # A network volume
//
// The file may lie on CephFS or NFS, where the shared memory of SQLite's WAL does
// not work between clients. A WAL without it needs locking_mode=EXCLUSIVE, which
// locks out the sites' shells while htcd runs. So there is a rollback
// journal, with synchronous=FULL. It is kept and its header overwritten (PERSIST):
// deleting it at each commit costs the file server a removal and a creation, and
// is durable only once the directory is too, which FULL does not wait for.
// Locks are POSIX record locks, which both file systems have; their holder may be
// another htcd during a rolling update, or a shell, and htcd waits for 10 s
// (busy_timeout) before it treats the file as unavailable.
//
// With a rollback journal a commit needs exclusive use of the file, and a reader
// delays it as long as it reads. cache_spill=OFF limits that to the commit itself,
// whatever the transaction's size, at the price of memory (20 MB for 100,000
// procs). Our own readers and the commit take turns by a lock in memory, which
// wakes them at once. temp_store=MEMORY, because the root file system may be
// read-only.
//
// # Space
//
// The file gives the space of deleted rows back (auto_vacuum=INCREMENTAL; space.go): VACUUM would keep all writers out
// for as long as it takes, and needs room twice the file. An older file is prepared once, by Open. Where the volume has
// no room for that it stays as it is, since nothing depends on it.
//
// # Damage
//
// Open does not check the whole file: PRAGMA quick_check reads all of it, 2.4 s
// for a million procs against 1 ms for opening. SQLite notices a foreign or cut
// file at once and other damage when it reads it; both are ErrCorrupt, from Open,
// Read or Write. Quarantine keeps it under another name; then Open begins a new
// one. For a file that was removed under an open ledger, the next Write returns
// ErrLost: SQLite checks that the name still leads to it before it writes a
// journal. So it does if another file has taken its place, or an older copy was
// written into it (identity.go). IsUnavailable reports a file that temporarily
// cannot be read or written; every later Write or Read begins with a fresh
// connection, and so recovers by itself when the volume is back.
//
// # Sizes
//
// 150 bytes of file per proc, indexes included, measured with 10,000 runs of
// 100. 100,000 procs of one run are inserted in half a second, by one statement.
// 64 writers recorded 10,000 callbacks a second where one durable write by hand
// took 1.2 ms (bench_test.go, 2 cores, ext4).
package ledger
