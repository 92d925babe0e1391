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
	"htc.cern.ch/htcd/internal/schedd/tool"
)

// The names under which the streams of a job are among its output. They are HTCondor's own names in the job's
// directory: a file that the script calls so is the stream.
const (
	Stdout = "_condor_stdout"
	Stderr = "_condor_stderr"
)

const (
	// attrFetch names, in the ad of a job, the fetch that takes it, so that the three commands of a
	// fetch speak of the same jobs.
	attrFetch = "HTCJobFetch"
	// attrFetched lets a completed job leave the queue.
	attrFetched = "HTCJobFetched"
)

const (
	// timePerTransfer is for a job of 1 GiB at 9 MB/s; one of a few KB takes 5 ms (measured, 100 in one command).
	timePerTransfer = 2 * time.Minute
	// maxTransferTime bounds the deadline of a command for many.
	maxTransferTime = 30 * time.Minute
)

// HoldTooMuchOutput is the hold code of a job that left more behind than Description.MaxOutput.
const HoldTooMuchOutput = 33

// Waiting matches every completed job, sent by some htcd, that has not been let go.
var Waiting = fmt.Sprintf("%s && JobStatus == %d && %s =!= true", Tagged, Completed, attrFetched)

// Procs are jobs of one cluster.
type Procs struct {
	Tag     Tag
	Cluster int
	Numbers []int
}

// Constraint matches those of them that have completed. A range costs the schedd two comparisons.
func (p Procs) Constraint() string {
	var numbers []string
	for i := 0; i < len(p.Numbers); {
		last := i
		for last+1 < len(p.Numbers) && p.Numbers[last+1] == p.Numbers[last]+1 {
			last++
		}
		numbers = append(numbers, fmt.Sprintf("ProcId >= %d && ProcId <= %d", p.Numbers[i], p.Numbers[last]))
		i = last + 1
	}
	return fmt.Sprintf("ClusterId == %d && %s && JobStatus == %d && (%s)", p.Cluster, p.Tag.Constraint(), Completed, strings.Join(numbers, " || "))
}

// ownPlaces takes out of an ad whatever else names a place for the tool to write to: who has the account of a job may have
// edited it.
var ownPlaces = []string{
	"Out", classad.Quote(Stdout), "Err", classad.Quote(Stderr), "TransferOutputRemaps", "undefined",
	"SUBMIT_Out", classad.Quote(Stdout), "SUBMIT_Err", classad.Quote(Stderr), "SUBMIT_TransferOutputRemaps", "undefined", "SUBMIT_UserLog", "undefined",
}

// TransferError says which job's output could not be had. The others may be had without it.
type TransferError struct {
	Proc int
	Err  *Error
	// Lacks are the names of files that HTCondor has listed and does not have. Where there are any, all else of this job
	// has come, in spite of the error.
	Lacks []string
}

func (e *TransferError) Error() string { return e.Err.Error() }

// Gone reports whether the schedd says that a file is not there.
func (e *TransferError) Gone() bool { return strings.Contains(e.Err.Stderr, "(errno 2)") }

// Missing is the path of the first file that the schedd says is not there.
func (e *TransferError) Missing() string {
	if m := missingFile.FindStringSubmatch(e.Err.Stderr); m != nil {
		return m[1]
	}
	return ""
}

var missingFile = regexp.MustCompile(`reading from file (\S[^\n]*?): \(errno 2\)`)

// Unwrap gives the error of the command.
func (e *TransferError) Unwrap() error { return e.Err }

// Transfer brings the output of completed jobs into dir, that of each into a directory there whose name is the job's
// proc number and which exists. Where dir is new for every call, nothing else is ever written there.
// After a nil error a directory is empty when its job was not in the queue as a completed one of this identity's; after
// any error but a TransferError with Lacks nothing is known of what is in them. The jobs stay in the queue until Release.
//
// HTCondor's tool writes into the directory that the job's ad names, at first the one that it was sent from. So the
// ad is edited, at once for all of them: no directory needs to be there before.
func (c *Client) Transfer(ctx context.Context, id Identity, procs Procs, dir string) error {
	into := "strcat(" + classad.Quote(dir+"/") + ", ProcId)"
	mark := classad.Quote(dir)
	edits := append([]string{"SUBMIT_Iwd", into, attrFetch, mark}, ownPlaces...)
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
	if err == nil || len(procs.Numbers) > 1 {
		return err
	}
	return c.rest(ctx, id, args, procs, dir, err)
}

// transfer runs condor_transfer_data. The ad may be edited again behind our back, so the kernel is asked, too, to let it
// write nowhere else.
func (c *Client) transfer(ctx context.Context, id Identity, args []string, procs Procs, dir string) error {
	timeout := min(c.o.Timeout+time.Duration(len(procs.Numbers))*timePerTransfer, max(c.o.Timeout, maxTransferTime))
	writes := []string{dir, "/dev/null"}
	if id.CCache != "" {
		writes = append(writes, id.CCache) // Kerberos keeps the schedd's ticket there
	}
	var out bytes.Buffer
	err := c.run(ctx, command{name: "condor_transfer_data", args: args, id: id, timeout: timeout, read: tool.Output(&out), writes: writes, echoes: true})
	var e *Error
	if errors.As(err, &e) {
		if m := targetJob.FindStringSubmatch(e.Stderr); m != nil && m[1] == strconv.Itoa(procs.Cluster) {
			proc, _ := strconv.Atoi(m[2])
			return &TransferError{Proc: proc, Err: e}
		}
	}
	return err
}

var targetJob = regexp.MustCompile(`File transfer failed for target job ([0-9]+)\.([0-9]+)`)

// Release lets completed jobs leave the queue, into the history; it takes the schedd up to PERIODIC_EXPR_INTERVAL, 60 s.
// That none is there is no error.
func (c *Client) Release(ctx context.Context, id Identity, procs Procs) error {
	_, err := c.edit(ctx, id, procs.Constraint(), attrFetched, "true")
	return err
}

// edit sets attributes of the jobs that match, all in one transaction. It reports whether there were any; condor_qedit says
// the same of none and of jobs of another account.
func (c *Client) edit(ctx context.Context, id Identity, constraint string, pairs ...string) (found bool, err error) {
	args, err := c.target(ctx, id)
	if err != nil {
		return false, err
	}
	args = append(append(args, "-constraint", constraint), pairs...)
	var out bytes.Buffer
	err = c.run(ctx, command{name: "condor_qedit", args: args, id: id, timeout: c.o.Timeout, read: tool.Output(&out)})
	var e *Error
	if errors.As(err, &e) && e.ExitCode == 1 && e.Kind == Unknown && strings.HasPrefix(e.Stderr, "Failed to set attribute") {
		return false, nil
	}
	return err == nil, err
}
