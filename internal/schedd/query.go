package schedd

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unique"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/plaintext"
	"htc.cern.ch/htcd/internal/schedd/submit"
)

// Query says which jobs are asked about, whoever owns them: of those in the queue, unless it says otherwise.
type Query struct {
	Where condor.Constraint

	Nodes    bool // they are nodes of DAGs: the Node of each is set. Nodes enter the history as soon as they have ended
	Presence bool // only ID, Status and Owner of each are wanted
	UIDs     bool // with Presence: the UID of the object of each, too, as Where allows no others

	Changed   *Period        // only those whose state may have changed then, or ErrTooMany
	Left      *HistoryBounds // those that have left the queue, for some perhaps twice, usually the last to leave first
	Factories bool           // not the jobs, but what makes them: see condor.Job.Factory
}

// Query calls fn for each job that q asks about. Only a nil error is an answer: what fn saw before an error proves
// nothing about what it did not see. An error of fn other than ErrReasons ends the query and is returned as it is.
//
// The history ends without an error where the schedd's does: older jobs are rotated away (3 files of 20 MB by default),
// and a remote query sees at most the newest 50,000.
func (c *Client) Query(ctx context.Context, id Identity, q Query, fn condor.JobFunc) error {
	switch {
	case q.Factories:
		return c.factories(ctx, id, q.Where, fn)
	case q.Changed != nil:
		return c.changed(ctx, id, question{Query: q}, *q.Changed, fn)
	case q.Left != nil:
		return c.history(ctx, id, question{Query: q}, *q.Left, fn)
	}
	return c.queue(ctx, id, question{Query: q}, fn)
}

func (c *Client) queue(ctx context.Context, id Identity, q question, fn condor.JobFunc) error {
	args, err := c.target(ctx, id)
	if err != nil {
		return err
	}
	// -allusers: the mapped name of an identity need not be the jobs' Owner.
	args = append(args, "-allusers", "-json")
	q.command = command{name: "condor_q", args: args, id: id, timeout: c.o.Timeout}
	return c.answer(ctx, q, fn)
}

// ask asks once for some attributes of the matching jobs.
func (c *Client) ask(ctx context.Context, cmd command, fn condor.JobFunc) error {
	cmd.read = func(r io.Reader) error {
		err := classad.ReadJSON(r, func(ad classad.Ad) error {
			j, err := newJob(ad)
			if err != nil {
				return err
			}
			if err := fn(j); err != nil {
				return &callerError{err}
			}
			return nil
		})
		var own *callerError
		if err != nil && !errors.As(err, &own) {
			return fmt.Errorf("the answer cannot be read: %w", err)
		}
		return err
	}
	if c.mirror != nil {
		return c.askMirror(ctx, cmd)
	}
	return c.run(ctx, cmd)
}

// fields are the requested attributes and their destinations. Requesting only these makes a query six times
// faster than requesting complete ads. None of them may be long.
var fields = map[string]func(*condor.Job, classad.Value){
	"ClusterId":             func(j *condor.Job, v classad.Value) { j.Cluster = integer(v) },
	"ProcId":                func(j *condor.Job, v classad.Value) { j.Proc = integer(v) },
	condor.AttrUID:          func(j *condor.Job, v classad.Value) { j.Tag.UID = interned(v) },
	condor.AttrAttempt:      func(j *condor.Job, v classad.Value) { j.Tag.Attempt = integer(v) },
	condor.AttrSpecHash:     func(j *condor.Job, v classad.Value) { j.Tag.SpecHash = hash(v) },
	condor.AttrNodes:        func(j *condor.Job, v classad.Value) { j.Tag.Nodes = hash(v) },
	condor.AttrRepeats:      func(j *condor.Job, v classad.Value) { j.Tag.Repeats = interned(v) },
	condor.AttrNumber:       func(j *condor.Job, v classad.Value) { j.Own = optionalInt(v) },
	condor.AttrLauncher:     func(j *condor.Job, v classad.Value) { j.Launcher, _ = v.Bool() },
	condor.AttrMade:         func(j *condor.Job, v classad.Value) { j.Made = integer(v) },
	condor.AttrPool:         func(j *condor.Job, v classad.Value) { j.Tag.Pool = poolName(v) },
	"Owner":                 func(j *condor.Job, v classad.Value) { j.Owner = interned(v) },
	"JobStatus":             func(j *condor.Job, v classad.Value) { j.Status = condor.JobStatus(integer(v)) },
	"LastJobStatus":         func(j *condor.Job, v classad.Value) { j.LastStatus = condor.JobStatus(integer(v)) },
	"ExitBySignal":          func(j *condor.Job, v classad.Value) { j.ExitBySignal = optionalBool(v) },
	"ExitCode":              func(j *condor.Job, v classad.Value) { j.ExitCode = optionalInt(v) },
	"ExitSignal":            func(j *condor.Job, v classad.Value) { j.ExitSignal = optionalInt(v) },
	"JobSuccessExitCode":    func(j *condor.Job, v classad.Value) { j.SuccessExitCode = integer(v) },
	condor.AttrSuccess:      func(j *condor.Job, v classad.Value) { j.SuccessCodes = interned(v) },
	condor.AttrHeldDeadline: func(j *condor.Job, v classad.Value) { j.HeldDeadline = seconds(v) },
	condor.AttrIdleDeadline: func(j *condor.Job, v classad.Value) { j.IdleDeadline = seconds(v) },
	condor.AttrRunDeadline:  func(j *condor.Job, v classad.Value) { j.RunDeadline = seconds(v) },
	"HoldReasonCode":        func(j *condor.Job, v classad.Value) { j.HoldReasonCode = integer(v) },
	"LastHoldReasonCode":    func(j *condor.Job, v classad.Value) { j.LastHoldReasonCode = integer(v) },
	"HoldReasonSubCode":     func(j *condor.Job, v classad.Value) { j.HoldReasonSubCode = integer(v) },
	"RemoteHost":            func(j *condor.Job, v classad.Value) { j.RemoteHost = interned(v) },
	"QDate":                 func(j *condor.Job, v classad.Value) { j.QDate = seconds(v) },
	"StageInFinish":         func(j *condor.Job, v classad.Value) { j.StageInFinish = seconds(v) },
	"EnteredCurrentStatus":  func(j *condor.Job, v classad.Value) { j.EnteredCurrentStatus = seconds(v) },
	"ServerTime":            func(j *condor.Job, v classad.Value) { j.ServerTime = seconds(v) },
	"JobStartDate":          func(j *condor.Job, v classad.Value) { j.JobStartDate = seconds(v) },
	"CompletionDate":        func(j *condor.Job, v classad.Value) { j.CompletionDate = seconds(v) },
	"JobFinishedHookDone":   func(j *condor.Job, v classad.Value) { j.JobFinishedHookDone = seconds(v) },
	"BytesSent":             func(j *condor.Job, v classad.Value) { j.BytesSent = size(v) },
	"NumJobStarts":          func(j *condor.Job, v classad.Value) { j.NumJobStarts = integer(v) },
	"TransferOutFinished":   transferred,
	"LastVacateTime":        func(j *condor.Job, v classad.Value) { j.LastVacateTime = seconds(v) },
	"JobCurrentStartDate":   func(j *condor.Job, v classad.Value) { j.JobCurrentStartDate = seconds(v) },
	"RemoteUserCpu":         func(j *condor.Job, v classad.Value) { j.UserCPU = real(v) },
	"RemoteSysCpu":          func(j *condor.Job, v classad.Value) { j.SysCPU = real(v) },
	"MemoryUsage":           func(j *condor.Job, v classad.Value) { j.MemoryUsage = size(v) },
	"ResidentSetSize":       func(j *condor.Job, v classad.Value) { j.ResidentSetSize = size(v) },
	"DiskUsage":             func(j *condor.Job, v classad.Value) { j.DiskUsage = size(v) },
	"RequestCpus":           func(j *condor.Job, v classad.Value) { j.RequestCpus = size(v) },
	"MaxHosts":              func(j *condor.Job, v classad.Value) { j.MaxHosts = size(v) },
	"RequestMemory":         func(j *condor.Job, v classad.Value) { j.RequestMemory = size(v) },
	"RequestDisk":           func(j *condor.Job, v classad.Value) { j.RequestDisk = size(v) },
	"MemoryProvisioned":     func(j *condor.Job, v classad.Value) { j.MemoryProvisioned = size(v) },

	// All that a job of several nodes has (23.9).
	"JobCurrentFinishTransferOutputDate": transferred,
}

func transferred(j *condor.Job, v classad.Value) {
	j.TransferOutFinished = max(j.TransferOutFinished, seconds(v))
}

// poolName returns "" for what is no name of an HTCPool: the owner of a job can put anything there, and it goes into
// the status.
func poolName(v classad.Value) string {
	name := interned(v)
	if len(name) > submit.MaxPool || !submit.ObjRE.MatchString(name) {
		return ""
	}
	return name
}

// hash returns "" for what htcd cannot have written: the owner of a job can put anything there, and it goes into the
// status.
func hash(v classad.Value) string {
	sum := interned(v)
	if len(sum) > 64 {
		return ""
	}
	if _, err := hex.DecodeString(sum); err != nil {
		return ""
	}
	return sum
}

// presence is what is requested with Query.Presence. The owner of a job can change none of it.
var presence = map[string]func(*condor.Job, classad.Value){
	"ClusterId": fields["ClusterId"],
	"ProcId":    fields["ProcId"],
	"JobStatus": fields["JobStatus"],
	"Owner":     fields["Owner"],
}

// taggedPresence is what is requested with Query.UIDs. The owner of a job can change the UID, but the constraint allows
// only those it names.
var taggedPresence = withMore(
	presence,
	map[string]func(*condor.Job, classad.Value){condor.AttrUID: fields[condor.AttrUID]},
)

// reasons are requested separately: see ErrReasons.
var reasons = map[string]func(*condor.Job, classad.Value){
	"HoldReason":     func(j *condor.Job, v classad.Value) { j.HoldReason = interned(v) },
	"LastHoldReason": func(j *condor.Job, v classad.Value) { j.LastHoldReason = interned(v) },
	"RemoveReason":   func(j *condor.Job, v classad.Value) { j.RemoveReason = interned(v) },
	// names of files, exactly
	condor.AttrOutputs: func(j *condor.Job, v classad.Value) {
		names, _ := v.Str()
		j.Outputs = strings.Clone(names)
	},
}

// Projection is what every query requests of a job, in the form that -attributes takes. Queries for nodes request their
// tag, too.
var Projection = attributes(fields)

func attributes[T any](of map[string]T) string {
	return strings.Join(slices.Sorted(maps.Keys(of)), ",")
}

// newJob reads an ad. An ad without a number or a state is not a job's.
func newJob(ad classad.Ad) (condor.Job, error) {
	j := condor.Job{Cluster: -1, Proc: -1}
	for _, a := range ad {
		if a.Name == LeftOut { // as of an ad that condor_q cannot show
			j.Unread, j.Reasoned = true, true
		}
		if set := nodeFields[a.Name]; set != nil {
			set(&j, a.Value)
			continue
		}
		for _, known := range []map[string]func(*condor.Job, classad.Value){nodeFields, reasons} {
			for name, set := range known { // perhaps in another case
				if strings.EqualFold(name, a.Name) {
					set(&j, a.Value)
				}
			}
		}
	}
	if j.Cluster < 1 || j.Proc < 0 || j.Status == 0 {
		return j, fmt.Errorf("an ad without ClusterId, ProcId or JobStatus: %s", condor.Clip(ad.String()))
	}
	return j, nil
}

// interned returns a string of its own: a value is a part of the text of the ad, all of which would stay in memory with
// it. Many jobs have the same. It is fit to be shown: the owner of a job, and whoever writes a policy, can put anything
// into an ad.
func interned(v classad.Value) string {
	s, _ := v.Str()
	return unique.Make(plaintext.Line(s)).Value()
}

func integer(v classad.Value) int   { i, _ := v.Int(); return int(i) }
func seconds(v classad.Value) int64 { i, _ := v.Int(); return i }

func real(v classad.Value) float64 { n, _ := v.Real(); return n }

// size reads a number of bytes, KiB or MiB, which HTCondor may store as a real number.
func size(v classad.Value) int64 {
	if n, ok := v.Real(); ok && n > 0 { // a user may have written anything
		return int64(min(n, 1<<50))
	}
	return 0
}

func optionalInt(v classad.Value) *int {
	i, ok := v.Int()
	if !ok {
		return nil
	}
	n := int(i)
	return &n
}

func optionalBool(v classad.Value) *bool {
	b, ok := v.Bool()
	if !ok {
		return nil
	}
	return &b
}
