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

// Factory is what the schedd has of one.
type Factory struct {
	Cluster int
	Tag     condor.Tag
	Node    condor.NodeTag // without a number: what it makes are nodes of a DAG
	Owner   string
	Next    int  // number of the job that it makes next: those before were made
	All     int  // how many it makes in all
	Open    bool // the launcher has let it make jobs
	QDate   int64
	Paused  string // why it makes no more jobs, though not all were made; empty: it goes on
}

// Factories calls fn for every matching factory in the schedd's queue.
func (c *Client) Factories(ctx context.Context, id Identity, constraint string, fn func(Factory) error) error {
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
		constraint+" && "+condor.AttrMade+" =!= undefined",
	)
	return c.run(ctx, command{name: "condor_q", args: args, id: id, timeout: c.o.Timeout, read: func(r io.Reader) error {
		return classad.ReadJSON(r, func(ad classad.Ad) error {
			if err := fn(newFactory(ad)); err != nil {
				return &callerError{err}
			}
			return nil
		})
	}})
}

// The modes of a factory in the attribute JobFactoryPaused.
const (
	factoryGoesOn  = 0
	factoryMadeAll = 2
	factoryRemoved = 3
)

func newFactory(ad classad.Ad) Factory {
	var f Factory
	mode, why := factoryGoesOn, ""
	for _, a := range ad {
		switch {
		case strings.EqualFold(a.Name, "ClusterId"):
			f.Cluster = integer(a.Value)
		case strings.EqualFold(a.Name, "Owner"):
			f.Owner = interned(a.Value)
		case strings.EqualFold(a.Name, "QDate"):
			f.QDate = seconds(a.Value)
		case strings.EqualFold(a.Name, condor.AttrUID):
			f.Tag.UID = interned(a.Value)
		case strings.EqualFold(a.Name, condor.AttrAttempt):
			f.Tag.Attempt = integer(a.Value)
		case strings.EqualFold(a.Name, condor.AttrPool):
			f.Tag.Pool = interned(a.Value)
		case strings.EqualFold(a.Name, condor.AttrWorkflow):
			f.Node.UID = interned(a.Value)
		case strings.EqualFold(a.Name, condor.AttrDAG):
			f.Node.DAG = integer(a.Value)
		case strings.EqualFold(a.Name, condor.AttrMade):
			f.All = integer(a.Value)
		case strings.EqualFold(a.Name, "JobMaterializeNextProcId"):
			f.Next = integer(a.Value)
		case strings.EqualFold(a.Name, "JobMaterializeMaxIdle"):
			f.Open = integer(a.Value) > 0
		case strings.EqualFold(a.Name, "JobMaterializePauseReason"):
			why = interned(a.Value)
		case strings.EqualFold(a.Name, "JobFactoryPaused"):
			mode = integer(a.Value)
		}
	}
	switch {
	case mode == factoryGoesOn || mode == factoryMadeAll || mode == factoryRemoved && f.Next >= f.All:
	case mode == factoryRemoved:
		f.Paused = "it was removed"
	case why == "":
		f.Paused = "HTCondor does not say why"
	default:
		f.Paused = why
	}
	return f
}

// SetParallelism changes how many jobs of a run's factory are there at a time, and how many of these wait for a slot at
// most. It is no error if the factory has gone.
func (c *Client) SetParallelism(ctx context.Context, id Identity, t condor.Tag, cluster, n, idle int) error {
	_, err := c.editFactory(
		ctx,
		id,
		t,
		cluster,
		"JobMaterializeLimit",
		fmt.Sprint(n),
		"JobMaterializeMaxIdle",
		fmt.Sprint(idle),
	)
	return err
}

// StopMaking has a run's factory make no more jobs, also after a restart of the schedd, and returns how many it has
// made. It returns false if the factory has gone.
func (c *Client) StopMaking(ctx context.Context, id Identity, t condor.Tag, cluster int) (made int, there bool, err error) {
	if there, err = c.editFactory(ctx, id, t, cluster, "JobMaterializeMaxIdle", "0", "JobMaterializePaused", fmt.Sprint(factoryRemoved)); err != nil ||
		!there {
		return 0, false, err
	}
	f, there, err := c.factory(ctx, id, t, cluster)
	return f.Next, there, err
}

func (c *Client) factory(
	ctx context.Context,
	id Identity,
	t condor.Tag,
	cluster int,
) (factory Factory, there bool, err error) {
	err = c.Factories(ctx, id, condor.In(cluster, t.Constraint()), func(f Factory) error {
		factory, there = f, true
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
