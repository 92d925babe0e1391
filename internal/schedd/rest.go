package schedd

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/submit"
	"htc.cern.ch/htcd/internal/schedd/tool"
)

// attrSpooled lists a job's output files, except its streams. HTCondor joins their names with commas and treats each
// comma in a name as its end. Without the list it sends every file that the job has left in its directory, whatever its
// name.
const attrSpooled = "SpooledOutputFiles"

// maxList limits, in bytes, the list written into an ad: the kernel accepts no argument of more than 128 KiB.
const maxList = 100 << 10

// rest fetches what exists of one job's output after a transfer in which a file was missing: the script may have
// removed its own streams, or the job was killed before its files got names without commas (see wrapper.sh). If the
// list has more than arrived, the error is a TransferError with Lacks.
func (c *Client) rest(ctx context.Context, id Identity, args []string, procs Procs, dir string, failure error) error {
	own := filepath.Join(dir, strconv.Itoa(procs.Numbers[0]))
	var unlisted *TransferError // the failure for which the list was omitted
	var list string
	for range 3 {
		var at *TransferError
		if !errors.As(failure, &at) || !at.Gone() {
			return failure
		}
		edit := []string{attrSpooled, ""}
		switch filepath.Base(at.Missing()) {
		case condor.Stdout:
			edit = []string{"Out", `"/dev/null"`}
		case condor.Stderr:
			edit = []string{"Err", `"/dev/null"`}
		default:
			if unlisted != nil {
				return failure
			}
			var err error
			if list, err = c.list(ctx, id, procs); err != nil {
				return err
			}
			if list == "" || len(list) > maxList {
				return failure
			}
			unlisted = at
			// The next fetch has the list again: only it shows whether something is missing.
			edit[1] = "ifThenElse(" + attrFetch + " =?= " + classad.Quote(dir) + ", undefined, " + classad.Quote(list) + ")"
		}
		if _, err := c.edit(ctx, id, procs.Constraint(), edit...); err != nil {
			return err
		}
		// The schedd may send an empty file for one it fails to read.
		if err := errors.Join(os.RemoveAll(own), os.Mkdir(own, 0o700)); err != nil {
			return err
		}
		if failure = c.transfer(ctx, id, args, procs, dir); failure == nil {
			break
		}
	}
	if failure != nil {
		return failure
	}
	came, err := names(own)
	if err != nil {
		return err
	}
	for _, stream := range []string{condor.Stdout, condor.Stderr} {
		f, err := os.OpenFile(
			filepath.Join(own, stream),
			os.O_CREATE|os.O_EXCL,
			0o600,
		) // #nosec G304 -- of this fetch alone
		if err == nil {
			err = f.Close()
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if lacks := lacking(list, came); len(lacks) > 0 {
		return &TransferError{Proc: unlisted.Proc, Err: unlisted.Err, Lacks: lacks}
	}
	return nil
}

// list requests the list of one job.
func (c *Client) list(ctx context.Context, id Identity, procs Procs) (string, error) {
	args, err := c.target(ctx, id)
	if err != nil {
		return "", err
	}
	args = append(
		args,
		"-allusers",
		"-constraint",
		string(procs.Constraint()),
		"-af",
		"ifThenElse(isString("+attrSpooled+"), "+attrSpooled+`, "")`,
	)
	var out bytes.Buffer
	err = c.run(ctx, command{name: "condor_q", args: args, id: id, timeout: c.o.Timeout, read: tool.Output(&out)})
	return strings.TrimSuffix(out.String(), "\n"), err
}

func names(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all, err
}

// lacking returns the names in a list that are neither the name of a file that arrived nor a part of one. Blanks at the
// ends of names and control characters do not count: the list may have lost them on its way. HTCondor 25 writes the
// list behind those of the checkpoints that were sent from the same machine, without a comma between
// (FileTransfer::PipeReadFullString).
func lacking(list string, came []string) []string {
	parts := map[string]int{}
	for _, name := range came {
		for _, part := range strings.Split(name, ",") {
			parts[plainName(part)]++
		}
	}
	var lacks []string
	for _, part := range strings.Split(list, ",") {
		name := plainName(part)
		for strings.HasPrefix(name, submit.DirCheckpoint) {
			name = name[len(submit.DirCheckpoint):]
		}
		if parts[name]--; parts[name] < 0 && name != "" {
			lacks = append(lacks, name)
		}
	}
	return lacks
}

func plainName(name string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, name))
}
