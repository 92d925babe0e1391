package submit

import (
	_ "embed"
	"fmt"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

//go:embed multinode.sh
var multinodeBody string

// mostNodes is the largest number of nodes of a job.
const mostNodes = 256

// checkNodes refuses what a job of several nodes cannot be. HTCondor makes one such job of all procs of a cluster, of
// which only the first has a return code (23.9).
func (d Description) checkNodes() error {
	one := "make several HTCJobs of one job each"
	switch {
	case d.Nodes == 0:
		return nil
	case d.Nodes < 2 || d.Nodes > mostNodes:
		return condor.Refusal(
			"spec.nodes: found %d, expected 2 to %d; a job of one node is one without nodes",
			d.Nodes,
			mostNodes,
		)
	case d.Queue > 1:
		return condor.Refusal(
			"spec.nodes: found %d jobs, expected 1: HTCondor would make a single job of them all; %s",
			d.Queue,
			one,
		)
	case d.Parallelism > 0:
		return condor.Refusal("spec.nodes: found parallelism, too, which is for many jobs: leave it out")
	case d.Checkpoint != nil:
		return condor.Refusal(
			"spec.nodes: found checkpoint, too: HTCondor keeps no checkpoint of a job of several nodes; leave it out",
		)
	case d.Interactive > 0 || d.KeepOnFailure > 0:
		return condor.Refusal(
			"spec.nodes: found interactive or keepOnFailure, too, which are for the container of a single node: leave it out",
		)
	case d.Sender == "":
		return condor.Refusal("spec.nodes: this htcd has no program to send along (--ship-sender)")
	}
	return nil
}

// universe returns the submit lines that say what kind of job it is.
func (d Description) universe() []option {
	if d.Nodes == 0 {
		return []option{{"universe", "vanilla"}}
	}
	return []option{{"universe", "parallel"}, {"machine_count", fmt.Sprint(d.Nodes)}}
}

// defaultNodeMemory is what a node asks for where nobody says it, in MiB: the default of HTCondor 25. That of 23 asks
// for MemoryUsage, which is the machine's until the job has run. While the schedd keeps a machine for further jobs of
// several nodes, that is what the last one took there, and a static slot without so much memory matched none of them
// (JOB_DEFAULT_REQUESTMEMORY; seen on 23.9).
const defaultNodeMemory = "128"

// nodeMemory has a job of several nodes ask for memory.
func (d Description) nodeMemory(options []option) []option {
	if _, there := value(options, "request_memory"); d.Nodes > 0 && !there {
		options = append(options, option{"request_memory", defaultNodeMemory})
	}
	return options
}

// closed keeps a job of several nodes from the schedd's files and from its own ad, which condor_submit opens to it: it
// could read what belongs to other jobs of the account, and take the tag of another HTCJob (tried on 23.9).
func (d Description) closed() []option {
	if d.Nodes == 0 {
		return nil
	}
	return []option{{"My.WantIOProxy", "false"}}
}
