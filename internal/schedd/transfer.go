package schedd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/submit"
	"htc.cern.ch/htcd/internal/schedd/tool"
)

// attrFetch names, in a job's ad, the fetch that handles it, so that the three commands of a fetch refer to the same
// jobs.
const attrFetch = "HTCJobFetch"

const (
	// timePerTransfer suffices for a job of 1 GiB at 9 MB/s; one of a few KB takes 5 ms (measured, 100 in one command).
	timePerTransfer = 2 * time.Minute
	// maxTransferTime limits the deadline of a command for many jobs.
	maxTransferTime = 30 * time.Minute
)

// Waiting matches every completed job, sent by any htcd, that has not been released.
var Waiting = condor.Constraint(
	fmt.Sprintf("%s && JobStatus == %d && %s =!= true", condor.Tagged, condor.Completed, condor.AttrFetched),
)

// Procs are jobs of one cluster.
type Procs struct {
	Tag     condor.Tag
	Cluster int
	Numbers []int
	Own     bool // Numbers are those of Job.Own
	Factory bool // it makes them: their places are others' as soon as they leave the queue
	DAG     bool // of a DAG: a removed one counts as completed
	// Nodes are those of a DAG whose directories a Transfer brings, alone; the DAG need not have ended then. None:
	// those of all.
	Nodes []int
}

// Constraint matches those that have completed, or whose nodes are asked for. A range costs the schedd two comparisons.
func (p Procs) Constraint() condor.Constraint {
	var numbers []condor.Constraint
	for i := 0; i < len(p.Numbers); {
		last := i
		for last+1 < len(p.Numbers) && p.Numbers[last+1] == p.Numbers[last]+1 {
			last++
		}
		numbers = append(numbers, condor.Numbers(p.Own, p.Numbers[i], p.Numbers[last]))
		i = last + 1
	}
	ended := fmt.Sprintf("JobStatus == %d", condor.Completed)
	switch {
	case len(p.Nodes) > 0:
		ended = "true"
	case p.DAG:
		ended = fmt.Sprintf("(%s || JobStatus == %d)", ended, condor.Removed)
	}
	return inCluster(p.Cluster).And(p.Tag.Constraint(), condor.Constraint(ended), condor.Or(numbers...))
}

// inCluster matches the jobs of a cluster, whoever sent them.
func inCluster(cluster int) condor.Constraint {
	return condor.Constraint(fmt.Sprintf("ClusterId == %d", cluster))
}

// NodesBrought returns the directory, in that of a Transfer, in which the directories of a DAG's nodes are, by their
// numbers. HTCondor brings a named directory without the path to it.
func NodesBrought(p Procs) string {
	if len(p.Nodes) == 0 {
		return "0/" + submit.DirNodes
	}
	return "0"
}

// nodeDirs names what a Transfer brings of a DAG.
func (p Procs) nodeDirs() string {
	if len(p.Nodes) == 0 {
		return submit.DirNodes
	}
	dirs := make([]string, len(p.Nodes))
	for i, node := range p.Nodes {
		dirs[i] = submit.DAGDir(node)
	}
	return strings.Join(dirs, ",")
}

// ownPlaces removes from an ad whatever else names a place for the tool to write to: anyone with the job's account may
// have edited it.
var ownPlaces = []string{
	"Out",
	classad.Quote(condor.Stdout),
	"Err",
	classad.Quote(condor.Stderr),
	"TransferOutputRemaps",
	"undefined",
	"SUBMIT_Out",
	classad.Quote(condor.Stdout),
	"SUBMIT_Err",
	classad.Quote(condor.Stderr),
	"SUBMIT_TransferOutputRemaps",
	"undefined",
	"SUBMIT_UserLog",
	"undefined",
}

// TransferError says which job's output could not be fetched. The others may be fetched without it.
type TransferError struct {
	Proc int // of the cluster
	Err  *condor.Error
	// Lacks names files that HTCondor has listed but does not have. If there are any, everything else of this job has
	// arrived in spite of the error.
	Lacks []string
}

func (e *TransferError) Error() string { return e.Err.Error() }

// Gone reports whether the schedd says that a file does not exist.
func (e *TransferError) Gone() bool { return strings.Contains(e.Err.Stderr, "(errno 2)") }

// Missing returns the path of the first file that the schedd says does not exist.
func (e *TransferError) Missing() string {
	if m := missingFile.FindStringSubmatch(e.Err.Stderr); m != nil {
		return m[1]
	}
	return ""
}

var missingFile = regexp.MustCompile(`reading from file (\S[^\n]*?): \(errno 2\)`)

// Unwrap returns the command's error.
func (e *TransferError) Unwrap() error { return e.Err }

// Transfer fetches the output of completed jobs, each into the existing directory dir/<proc>. If dir is new for every
// call, nothing else is ever written there. After a nil error, a directory is empty if its job was not in the queue as
// a completed one of this identity; after any error but a TransferError with Lacks the directories' contents are
// undefined. The jobs stay in the queue until Release.
//
// HTCondor's tool writes into the directory that the job's ad names, initially the one it was sent from. So the ads are
// edited, all at once: no directory needs to exist before.
func (c *Client) Transfer(ctx context.Context, id Identity, procs Procs, dir string) error {
	into := "strcat(" + classad.Quote(dir+"/") + ", " + condor.NumberAttribute(procs.Own) + ")"
	mark := classad.Quote(dir)
	edits := append([]string{"SUBMIT_Iwd", into, attrFetch, mark}, ownPlaces...)
	if procs.DAG {
		edits = append(edits, "TransferOutput", classad.Quote(procs.nodeDirs()))
	}
	found, err := c.edit(ctx, id, procs.Constraint(), edits...)
	if err != nil || !found {
		return err
	}
	args, err := c.target(ctx, id)
	if err != nil {
		return err
	}
	args = append(args, "-constraint", fmt.Sprintf("%s =?= %s && %s", attrFetch, mark, procs.Constraint()))
	err = c.transfer(ctx, id, args, procs, dir)
	if err == nil || len(procs.Numbers) > 1 || procs.DAG {
		return err
	}
	return c.rest(ctx, id, args, procs, dir, err)
}

// transfer runs condor_transfer_data. The ad may be edited again behind our back, so the kernel also confines its
// writes.
func (c *Client) transfer(ctx context.Context, id Identity, args []string, procs Procs, dir string) error {
	timeout := max(c.o.Timeout, maxTransferTime)
	if !procs.DAG {
		timeout = min(c.o.Timeout+time.Duration(len(procs.Numbers))*timePerTransfer, timeout)
	}
	writes := []string{dir, "/dev/null"}
	if id.CCache != "" {
		writes = append(writes, id.CCache) // Kerberos keeps the schedd's ticket there
	}
	var out bytes.Buffer
	err := c.run(
		ctx,
		command{
			name:    "condor_transfer_data",
			args:    args,
			id:      id,
			timeout: timeout,
			read:    tool.Output(&out),
			writes:  writes,
			echoes:  true,
		},
	)
	var e *condor.Error
	if errors.As(err, &e) {
		if m := targetJob.FindStringSubmatch(e.Stderr); m != nil && m[1] == strconv.Itoa(procs.Cluster) {
			proc, _ := strconv.Atoi(m[2])
			return &TransferError{Proc: proc, Err: e}
		}
	}
	return err
}

var targetJob = regexp.MustCompile(`File transfer failed for target job ([0-9]+)\.([0-9]+)`)

// Release lets completed jobs leave the queue for the history; the schedd takes up to PERIODIC_EXPR_INTERVAL, 60 s, for
// this, but not for those of a factory: they leave at once, removed, and stay completed (see Remove). It is not an
// error if there are none; found is false then, and for jobs of another account.
type Release struct{ Procs }

func (r Release) by(ctx context.Context, c *Client, id Identity) (o Outcome, err error) {
	if r.Factory {
		return c.Change(ctx, id, Remove{r.Constraint(), "htcd: its output has been fetched"})
	}
	o.Found, err = c.edit(ctx, id, r.Constraint(), condor.AttrFetched, "true")
	return o, err
}

// edit sets attributes of the matching jobs, all in one transaction. It reports whether there were any; condor_qedit
// reports the same for none and for jobs of another account, and also when the schedd dies in between: then it does not
// answer the second time.
func (c *Client) edit(
	ctx context.Context,
	id Identity,
	where condor.Constraint,
	pairs ...string,
) (found bool, err error) {
	args, err := c.target(ctx, id)
	if err != nil {
		return false, err
	}
	args = append(append(args, "-constraint", string(where)), pairs...)
	for range 2 {
		var out bytes.Buffer
		err = c.run(
			ctx,
			command{name: "condor_qedit", args: args, id: id, timeout: c.o.Timeout, read: tool.Output(&out)},
		)
		var e *condor.Error
		if !errors.As(err, &e) || e.ExitCode != 1 || e.Kind != condor.Unknown ||
			!strings.HasPrefix(e.Stderr, "Failed to set attribute") {
			return err == nil, err
		}
	}
	return false, nil
}
