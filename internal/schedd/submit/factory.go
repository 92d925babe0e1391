package submit

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/condor"
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
	fileOwnAll   = "own.tgz" // of the files of items, in dirOwn
	dirOwn       = "own"
)

// removeSignal is what HTCondor sends to a launcher, and to a DAGMan, that is removed; any other only ends it for now.
var removeSignal = option{"remove_kill_sig", "SIGUSR1"}

// hereMacro stands for the launcher's directory in a factory's submit description.
const hereMacro = "$(htcd_here)/"

// IdleAtOnce is how many jobs of a factory wait for a slot at most.
const IdleAtOnce = 1000

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
			condor.Stdout,
		}, {"error", condor.Stderr}, {"My.JobBatchName", classad.Quote(d.BatchName)}, noMail, {"leave_in_queue", "False"},
		removeSignal, {"on_exit_remove", "ExitBySignal =?= false && ExitCode =?= 0"}, {"My.DisableCoolDown", "true"},
		{"My." + condor.AttrLauncher, "true"},
	}, heldIfUnable(124)...), tagLines(tag)...), 1)
	return append(files,
		File{Name: fileLauncher, Mode: 0o755, Content: d.launcher()},
		File{Name: fileFactory, Mode: 0o600, Content: d.factory(submit)},
		File{Name: FileSubmit, Mode: 0o644, Content: launcher})
}

// launcher returns the text of factory.sh, the launcher's executable.
func (d Description) launcher() string {
	return fmt.Sprintf(
		"#!/bin/sh\n# Hands the jobs of the HTCJob %s/%s to the schedd.\nnodes=0\ntag=%s\n%s%s%s",
		d.Tag.Namespace,
		d.Tag.Name,
		ShellQuote(
			string(d.Tag.Constraint().And(condor.AttrLauncher+" =!= true")),
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
			b.WriteString(d.fromHere(value))
		case command == "transfer_plugins":
			fmt.Fprintf(&b, "%s = %s\n", command, strings.ReplaceAll(value, "="+filePlugin, "="+hereMacro+filePlugin))
		case strings.HasPrefix(line, "queue "):
			fmt.Fprintf(
				&b,
				"max_idle = 0\nMy.%s = %d\nMy.StageInStart = 1\nMy.StageInFinish = 1\n%s",
				condor.AttrMade,
				d.Queue,
				line,
			)
		default:
			b.WriteString(line)
		}
	}
	return b.String()
}

// fromHere is the command that transfers the files of a list from the launcher's directory.
func (d Description) fromHere(list string) string {
	names, block := strings.Split(list, ", "), ""
	for i, name := range names {
		number, own := strings.CutPrefix(name, fileOwn)
		switch {
		case strings.Contains(name, "://"), strings.HasPrefix(name, "$("):
		case own:
			block = fmt.Sprintf("%s = %s / %d\n", ownBlock, number, d.perBlock())
			names[i] = fmt.Sprintf("%s%s/%s$INT(%s)", hereMacro, dirOwn, fileBlock, ownBlock)
		default:
			names[i] = hereMacro + name
		}
	}
	return fmt.Sprintf("%stransfer_input_files = %s\n", block, strings.Join(names, ", "))
}

// archiveOwn writes the files of items into one, each with this head.
func archiveOwn(dir, head string, files []File) (err error) {
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
		f.Name, f.Content = dirOwn+"/"+f.Name, head+f.Text()
		w.file(f)
	}
	return errors.Join(w.err, w.Close(), zip.Close(), to.Sync())
}
