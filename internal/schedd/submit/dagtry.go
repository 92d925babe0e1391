package submit

import (
	"fmt"
	"time"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// tryTime is how long the job of TryDAG exists at most, whatever becomes of htcd.
const tryTime = 10 * time.Minute

// Trial returns the sandbox of a DAG without nodes, which ends where DAGMan would begin. It has no tag: no htcd looks
// for it.
func Trial() (Sandbox, error) {
	archive, err := DAG{}.archive([]File{{Name: fileFlow + ".new", Mode: 0o600}}, nil, nil)
	if err != nil {
		return Sandbox{}, err
	}
	limit := int64(tryTime / time.Second)
	submit := written(append([]option{
		{
			"universe",
			"scheduler",
		}, {"executable", fileStarter}, {"transfer_input_files", fileArchive}, {"output", condor.Stdout}, {"error", condor.Stderr},
		{"My.JobBatchName", classad.Quote("htcd doctor")}, noMail,
		{"leave_in_queue", fmt.Sprintf("JobStatus == %d && time() - QDate < %d", condor.Completed, limit)},
		{"periodic_remove", fmt.Sprintf("time() - QDate > %d", limit)},
	}, heldIfUnable(122)...), 1)
	return Sandbox{Procs: 1, Files: []File{
		{Name: fileArchive, Mode: 0o600, Content: archive},
		{
			Name:    fileStarter,
			Mode:    0o755,
			Content: "#!/bin/sh\n# Tries whether HTCWorkflows could run.\nmax_idle=0\nmax_jobs=0\n" + starterBody,
		},
		{Name: FileSubmit, Mode: 0o644, Content: submit},
	}}, checkWritten(submit)
}
