package schedd

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/tool"
)

// factories calls fn for each factory in the schedd's queue that matches.
func (c *Client) factories(ctx context.Context, id Identity, where condor.Constraint, fn condor.JobFunc) error {
	if c.mirror != nil {
		return fmt.Errorf("%w: it shows no factories", ErrMirror)
	}
	args, err := c.target(ctx, id)
	if err != nil {
		return err
	}
	of := []string{
		"ClusterId",
		"Owner",
		"QDate",
		condor.AttrUID,
		condor.AttrAttempt,
		condor.AttrPool,
		condor.AttrWorkflow,
		condor.AttrDAG,
		condor.AttrMade,
		"JobMaterializeNextProcId",
		"JobMaterializeMaxIdle",
		"JobFactoryPaused",
		"JobMaterializePauseReason",
	}
	args = append(
		args,
		"-allusers",
		"-factory",
		"-json",
		"-attributes",
		strings.Join(of, ","),
		"-constraint",
		string(where.And(condor.AttrMade+" =!= undefined")),
	)
	return c.run(
		ctx,
		command{name: "condor_q", args: args, id: id, timeout: c.o.Timeout, read: func(r io.Reader) error {
			return classad.ReadJSON(r, func(ad classad.Ad) error {
				if err := fn(newFactory(ad)); err != nil {
					return &callerError{err}
				}
				return nil
			})
		}},
	)
}

// The modes of a factory in the attribute JobFactoryPaused.
const (
	factoryGoesOn  = 0
	factoryMadeAll = 2
	factoryRemoved = 3
)

func newFactory(ad classad.Ad) condor.Job {
	var j condor.Job
	var f condor.Factory
	mode, why := factoryGoesOn, ""
	for _, a := range ad {
		switch {
		case strings.EqualFold(a.Name, "ClusterId"):
			j.Cluster = integer(a.Value)
		case strings.EqualFold(a.Name, "Owner"):
			j.Owner = interned(a.Value)
		case strings.EqualFold(a.Name, "QDate"):
			j.QDate = seconds(a.Value)
		case strings.EqualFold(a.Name, condor.AttrUID):
			j.Tag.UID = interned(a.Value)
		case strings.EqualFold(a.Name, condor.AttrAttempt):
			j.Tag.Attempt = integer(a.Value)
		case strings.EqualFold(a.Name, condor.AttrPool):
			j.Tag.Pool = interned(a.Value)
		case strings.EqualFold(a.Name, condor.AttrWorkflow):
			j.Node.UID = interned(a.Value)
		case strings.EqualFold(a.Name, condor.AttrDAG):
			j.Node.DAG = integer(a.Value)
		case strings.EqualFold(a.Name, condor.AttrMade):
			j.Made = integer(a.Value)
		case strings.EqualFold(a.Name, "JobMaterializeNextProcId"):
			f.Next = integer(a.Value)
			f.Open = f.Open || f.Next > 0
		case strings.EqualFold(a.Name, "JobMaterializeMaxIdle"):
			f.Open = f.Open || integer(a.Value) > 0
		case strings.EqualFold(a.Name, "JobMaterializePauseReason"):
			why = interned(a.Value)
		case strings.EqualFold(a.Name, "JobFactoryPaused"):
			mode = integer(a.Value)
		}
	}
	switch {
	case mode == factoryGoesOn || mode == factoryMadeAll || mode == factoryRemoved && f.Next >= j.Made:
	case mode == factoryRemoved:
		f.Paused = "it was removed"
	case why == "":
		f.Paused = "HTCondor does not say why"
	default:
		f.Paused = why
	}
	j.Factory = &f
	return j
}

// SetParallelism changes how many jobs of a run's factory are there at a time, and how many of these wait for a slot at
// most. It is no error if the factory has gone.
type SetParallelism struct {
	Tag        condor.Tag
	Cluster    int
	Jobs, Idle int
}

func (s SetParallelism) by(ctx context.Context, c *Client, id Identity) (Outcome, error) {
	there, err := c.editFactory(
		ctx,
		id,
		s.Tag,
		s.Cluster,
		"JobMaterializeLimit",
		fmt.Sprint(s.Jobs),
		"JobMaterializeMaxIdle",
		fmt.Sprint(s.Idle),
	)
	return Outcome{Found: there}, err
}

// StopMaking has a run's factory make no more jobs, also after a restart of the schedd. The outcome is how many it has
// made; it is not found if it has gone.
type StopMaking struct {
	Tag     condor.Tag
	Cluster int
}

func (s StopMaking) by(ctx context.Context, c *Client, id Identity) (Outcome, error) {
	there, err := c.editFactory(
		ctx,
		id,
		s.Tag,
		s.Cluster,
		"JobMaterializeMaxIdle",
		"0",
		"JobMaterializePaused",
		fmt.Sprint(factoryRemoved),
	)
	if err != nil || !there {
		return Outcome{}, err
	}
	f, there, err := c.factory(ctx, id, s.Tag, s.Cluster)
	return Outcome{Found: there, Made: f.Next}, err
}

func (c *Client) factory(
	ctx context.Context,
	id Identity,
	t condor.Tag,
	cluster int,
) (factory condor.Factory, there bool, err error) {
	err = c.factories(ctx, id, t.Constraint().In(cluster), func(j condor.Job) error {
		factory, there = *j.Factory, true
		return nil
	})
	return factory, there, err
}

// editFactory sets attributes of a run's factory, unless that has gone.
func (c *Client) editFactory(
	ctx context.Context,
	id Identity,
	t condor.Tag,
	cluster int,
	attributes ...string,
) (there bool, err error) {
	if _, there, err = c.factory(ctx, id, t, cluster); err != nil || !there {
		return there, err
	}
	args, err := c.target(ctx, id)
	if err != nil {
		return there, err
	}
	// A factory is edited by its number alone: constraints are for jobs.
	args = append(append(args, fmt.Sprint(cluster)), attributes...)
	var out bytes.Buffer
	return there, c.run(
		ctx,
		command{name: "condor_qedit", args: args, id: id, timeout: c.o.Timeout, read: tool.Output(&out)},
	)
}
