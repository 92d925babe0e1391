// Package inputs brings the files of spec.inputs into the directory of a run.
//
//	Check    what the spec alone shows to be wrong                       (pure)
//	Resolve  whether every source is there, how large, in which places   (waits, or fails the HTCJob)
//	Stage    the files, in the run's directory, with their digest        (read once for an attempt)
//	Staged   the digest of files staged before, if they are still whole
//
// Below the run's directory lie
//
//	.in/shared/NAME         what every proc gets; with `proc: All` a directory of files called by their proc's number
//	.in/<proc>/NAME         what only that proc gets (`proc: Same`)
//	.in.json                what they are
//
// HTCondor transfers the contents of both directories: each file arrives under its name in the script's directory.
//
// Uploads are staged as links to them, and take no further room.
//
// Artifacts are asked for when everything else is there, and fetched while they are staged.
//
// A source that is not there yet is a *Waiting, one that never will be a *Failed. Both are for people, and say what to
// do.
package inputs
