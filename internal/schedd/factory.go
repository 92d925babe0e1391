package schedd

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/tool"
)

// HTCondor's late materialization keeps one ad, the factory, for many jobs, and makes them as others end. condor_submit
// -spool cannot send a factory (23.9: it spools nothing), so a job of the scheduler universe, the launcher, is spooled,
// and hands it to its own schedd: factory.sh. The jobs find their inputs in the launcher's directory. They look like
// spooled ones, StageInFinish set and their initial directory the one that the schedd has for what it spools of them;
// so their output is fetched like that of others, and goes when they leave the queue.
//
// Launcher, factory and jobs carry the tag of the run.

// Names in the launcher's directory.
const (
	fileLauncher = "factory.sh"
	fileFactory  = "factory.sub"
	fileOwnAll   = "own.tgz" // of the files that single procs get, in dirOwn
	dirOwn       = "own"
)

const (
	// attrLauncher marks the launcher.
	attrLauncher = "HTCJobLauncher"
	// attrMade is, in the ads of a factory and its jobs, how many jobs it makes in all.
	attrMade = "HTCJobFactory"
)

// removeSignal is what HTCondor sends to a launcher, and to a DAGMan, that is removed; any other only ends it for now.
var removeSignal = option{"remove_kill_sig", "SIGUSR1"}

// hereMacro stands for the launcher's directory in a factory's submit description.
const hereMacro = "$(htcd_here)/"

// IdleAtOnce is how many jobs of a factory wait for a slot at most.
const IdleAtOnce = 1000

// Factory is what the schedd has of one.
type Factory struct {
	Cluster int
	Tag     Tag
	Owner   string
	Next    int  // number of the job that it makes next: those before were made
	All     int  // how many it makes in all
	Open    bool // the launcher has let it make jobs
	QDate   int64
	Paused  string // why it makes no more jobs, though not all were made; empty: it goes on
}

// manufactured returns the files of a run whose jobs a factory makes, given those of a cluster and its checked submit
// description.
func (d Description) manufactured(files []File, submit string) []File {
	names := []string{fileFactory, fileJob}
	if len(d.Items) > 0 {
		names = append(names, fileOwnAll)
	} else {
		names = append(names, fileToken)
	}
	for _, f := range files {
		if !f.OfProc && f.Name != fileJob {
			names = append(names, f.Name)
		}
	}
	if len(d.inputDirs()) > 0 {
		names = append(names, InputsDir)
	}
	tag := d.Tag
	tag.Pool = "" // suspending a pool holds the jobs
	launcher := written(append(append([]option{
		{"universe", "scheduler"}, {"executable", fileLauncher}, {"transfer_input_files", strings.Join(names, ", ")},
		{
			"output",
			Stdout,
		}, {"error", Stderr}, {"My.JobBatchName", classad.Quote(d.BatchName)}, noMail, {"leave_in_queue", "False"},
		removeSignal, {"on_exit_remove", "ExitBySignal =?= false && ExitCode =?= 0"}, {"My.DisableCoolDown", "true"},
		{"My." + attrLauncher, "true"},
	}, heldIfUnable(124)...), tagLines(tag)...), 1)
	return append(files,
		File{Name: fileLauncher, Mode: 0o755, Content: d.launcher()},
		File{Name: fileFactory, Mode: 0o600, Content: d.factory(submit)},
		File{Name: fileSubmit, Mode: 0o644, Content: launcher})
}

// launcher returns the text of factory.sh, the launcher's executable.
func (d Description) launcher() string {
	return fmt.Sprintf(
		"#!/bin/sh\n# Hands the jobs of the HTCJob %s/%s to the schedd.\ntag=%s\n%s%s%s",
		d.Tag.Namespace,
		d.Tag.Name,
		shellQuote(
			d.Tag.Constraint()+" && "+attrLauncher+" =!= true",
		),
		mostLines(d.Parallelism, min(d.Parallelism, IdleAtOnce)),
		onHostBody,
		factoryBody,
	)
}

// AtMost is a sandbox whose factory has at most so many jobs in the queue at a time, and so many that wait for a slot.
func (s Sandbox) AtMost(open, idle int) Sandbox {
	s.Files = slices.Clone(s.Files)
	for i, f := range s.Files {
		if f.Name == fileLauncher {
			head, rest, _ := strings.Cut(f.Content, mostLines(s.Factory, min(s.Factory, IdleAtOnce)))
			s.Files[i].Content = head + mostLines(open, idle) + rest
		}
	}
	s.Factory = open
	return s
}

func mostLines(open, idle int) string { return fmt.Sprintf("most=%d\nidle=%d\n", open, idle) }

// factory makes the submit description of a cluster that of a factory, which makes no jobs yet.
func (d Description) factory(submit string) string {
	var b strings.Builder
	for line := range strings.Lines(submit) {
		command, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " = ")
		switch {
		case command == "transfer_input_files":
			fmt.Fprintf(&b, "%s = %s\n", command, fromHere(value))
		case command == "transfer_plugins":
			fmt.Fprintf(&b, "%s = %s\n", command, strings.ReplaceAll(value, "="+filePlugin, "="+hereMacro+filePlugin))
		case strings.HasPrefix(line, "queue "):
			fmt.Fprintf(&b, "max_idle = 0\nMy.%s = %d\nMy.StageInStart = 1\nMy.StageInFinish = 1\n%s", attrMade, d.Queue, line)
		default:
			b.WriteString(line)
		}
	}
	return b.String()
}

// fromHere names the files of a list by their paths.
func fromHere(list string) string {
	names := strings.Split(list, ", ")
	for i, name := range names {
		switch {
		case strings.Contains(name, "://"), strings.HasPrefix(name, "$("):
		case strings.HasPrefix(name, fileOwn):
			names[i] = hereMacro + dirOwn + "/" + name
		default:
			names[i] = hereMacro + name
		}
	}
	return strings.Join(names, ", ")
}

// archiveOwn writes the files of single procs into one.
func archiveOwn(dir string, files []File) (err error) {
	to, err := os.OpenFile(
		filepath.Join(dir, fileOwnAll),
		os.O_WRONLY|os.O_CREATE|os.O_TRUNC,
		0o600,
	) // #nosec G304 -- a run's staging directory
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	zip, err := gzip.NewWriterLevel(to, gzip.BestSpeed)
	if err != nil {
		return err
	}
	w := tarWriter{tar.NewWriter(zip), nil}
	w.dir(dirOwn)
	for _, f := range files {
		f.Name = dirOwn + "/" + f.Name
		w.file(f)
	}
	return errors.Join(w.err, w.Close(), zip.Close(), to.Sync())
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
		attrUID,
		attrAttempt,
		attrPool,
		attrMade,
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
		constraint+" && "+attrMade+" =!= undefined",
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
		case strings.EqualFold(a.Name, attrUID):
			f.Tag.UID = interned(a.Value)
		case strings.EqualFold(a.Name, attrAttempt):
			f.Tag.Attempt = integer(a.Value)
		case strings.EqualFold(a.Name, attrPool):
			f.Tag.Pool = interned(a.Value)
		case strings.EqualFold(a.Name, attrMade):
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
func (c *Client) SetParallelism(ctx context.Context, id Identity, t Tag, cluster, n, idle int) error {
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
func (c *Client) StopMaking(ctx context.Context, id Identity, t Tag, cluster int) (made int, there bool, err error) {
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
	t Tag,
	cluster int,
) (factory Factory, there bool, err error) {
	err = c.Factories(ctx, id, In(cluster, t.Constraint()), func(f Factory) error {
		factory, there = f, true
		return nil
	})
	return factory, there, err
}

// editFactory sets attributes of a run's factory, unless that has gone.
func (c *Client) editFactory(
	ctx context.Context,
	id Identity,
	t Tag,
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
