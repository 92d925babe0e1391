package plugin

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/internal/aggregate"
	"htc.cern.ch/htcd/internal/output"
)

func getOutputCommand() *cobra.Command {
	var at connection
	var proc, attempt int
	var force bool
	c := &cobra.Command{
		Use:   "get-output NAME DIR",
		Short: "Copy what the jobs of an HTCJob brought back into a directory",
		Long: `Copy what the ended jobs of an HTCJob brought back into a directory, which is made where it is not there: DIR/0
has the files of its first job, stdout and stderr among them.

Called again after it was interrupted, or while more jobs end, it copies what is not there yet. A job's directory
appears when it is complete. What was there before, or is of an earlier attempt, is only replaced with --force.`,
		Args: arguments(2, "the name of an HTCJob and a directory"),
	}
	at.flags(c.Flags())
	c.Flags().IntVarP(&proc, "proc", "p", -1, "`number` of the only job that is wanted; -1: all")
	c.Flags().IntVar(&attempt, "attempt", 0, "an earlier attempt's `number`, while its output is kept; 0: the newest")
	c.Flags().BoolVar(&force, "force", false, "replace what is there")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		name, err := named(args[0])
		if err != nil {
			return err
		}
		if proc < -1 || attempt < 0 {
			return Usage{errors.New("--proc: want a number from 0 on; --attempt: from 1 on")}
		}
		where, err := at.open(cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		ctx := cmd.Context()
		job, err := where.jobs.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		err = os.MkdirAll(args[1], 0o777) // #nosec G301 -- as the user's umask has it
		if err != nil {
			return err
		}
		root, err := os.OpenRoot(args[1])
		if err != nil {
			return err
		}
		defer root.Close()
		into := &landing{root: root, force: force, origin: origin{HTCJob: where.namespace + "/" + name, UID: string(job.UID)}}
		if err := ended(ctx, where.fetch(ctx, name, proc, attempt, into)); err != nil {
			return err
		}
		switch {
		case into.there > 0:
			fmt.Fprintf(cmd.ErrOrStderr(), "jobs whose output is in %[2]s now: %[1]d, there already: %[3]d\n", into.came, args[1], into.there)
		default:
			fmt.Fprintf(cmd.ErrOrStderr(), "jobs whose output is in %[2]s now: %[1]d\n", into.came, args[1])
		}
		if open := job.Status.Active; open > 0 && proc < 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "jobs that have not ended yet: %d; call this again for what they will bring\n", open)
		}
		return nil
	}
	return c
}

// fetch lets the archive land, over as many connections as that takes.
func (c *cluster) fetch(ctx context.Context, name string, proc, attempt int, into *landing) error {
	parameters := url.Values{"attempt": {strconv.Itoa(attempt)}}
	if proc >= 0 {
		parameters.Set("proc", strconv.Itoa(proc))
	}
	begun := false
	try := func() (bool, error) {
		if proc < 0 && into.next > 0 {
			parameters.Set("from", strconv.Itoa(into.next))
		}
		response, err := c.output(ctx, name, "log/archive", parameters)
		if err != nil {
			return false, err
		}
		defer response.Body.Close()
		before := into.next
		if !begun {
			begun = true
			into.origin.Attempt, _ = strconv.Atoi(response.Header.Get(aggregate.HeaderAttempt)) // else it is 0
			parameters.Set("attempt", strconv.Itoa(into.origin.Attempt))
			if err := into.claim(); err != nil {
				return false, errHere{err}
			}
		}
		err = into.unpack(response.Body)
		return into.next > before, err
	}
	if _, err := try(); err == nil || !begun || !passing(err) {
		return err
	}
	return again(ctx, try)
}

// origin tells whose output a directory holds.
type origin struct {
	HTCJob  string `json:"htcjob"`
	UID     string `json:"uid"`
	Attempt int    `json:"attempt"`
}

// originFile is where it stands.
const originFile = ".htcd-output"

// landing is the directory where an archive is unpacked. Nothing lands outside of it, whatever the archive says: the jobs'
// programs have chosen the names.
type landing struct {
	root   *os.Root
	force  bool
	origin origin
	same   bool // what is there is of the same attempt

	next        int // everything below is through
	came, there int
}

// claim writes down whose output this is to be.
func (l *landing) claim() error {
	mine, err := json.Marshal(l.origin)
	if err != nil {
		return err
	}
	theirs, err := l.root.ReadFile(originFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case bytes.Equal(bytes.TrimSpace(theirs), mine):
		l.same = true
		return nil
	case !l.force:
		return fmt.Errorf("the directory holds other output, of %s: choose another, or say --force", bytes.TrimSpace(theirs))
	}
	if l.force {
		if err := l.clear(); err != nil {
			return err
		}
	}
	return l.root.WriteFile(originFile, append(mine, '\n'), 0o666)
}

// clear removes what jobs have brought that nobody asks for any more.
func (l *landing) clear() error {
	entries, err := fs.ReadDir(l.root.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && strconv.Itoa(n) == e.Name() && n >= 0 {
			if err := l.root.RemoveAll(e.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}

// unpack takes an archive in which the jobs come in order, each with all its files. Each lands in a directory of another
// name first, which gets its own when it is complete.
func (l *landing) unpack(r io.Reader) (err error) {
	archive := tar.NewReader(r)
	current := -1 // the job that is landing
	skip := false
	defer func() {
		if current >= 0 && !skip {
			err = errors.Join(err, l.root.RemoveAll(part(current)))
		}
	}()
	for {
		header, err := archive.Next()
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		proc, rest, atEnd := -1, "", err != nil
		if !atEnd {
			if proc, rest, err = entry(header); err != nil {
				return errHere{err}
			}
		}
		if proc != current {
			if current >= 0 && !skip {
				if err := l.land(current); err != nil {
					return errHere{err}
				}
			}
			if current >= 0 {
				l.next = current + 1
			}
			if atEnd {
				current = -1
				return nil
			}
			if current, skip = proc, false; proc < l.next {
				return errHere{fmt.Errorf("the archive has job %d out of its turn", proc)}
			}
			if skip, err = l.begin(proc); err != nil {
				return errHere{err}
			}
		}
		if atEnd {
			return nil
		}
		if skip {
			continue
		}
		if err := l.place(filepath.Join(part(proc), rest), header, archive); err != nil {
			return err
		}
	}
}

func part(proc int) string { return fmt.Sprintf(".htcd-%d.part", proc) }

// entry tells whose an entry is. Only files and directories are taken: a link could lead anywhere.
func entry(header *tar.Header) (proc int, rest string, err error) {
	first, rest, _ := strings.Cut(strings.TrimSuffix(header.Name, "/"), "/")
	proc, err = strconv.Atoi(first)
	switch {
	case err != nil || proc < 0 || strconv.Itoa(proc) != first:
		return 0, "", fmt.Errorf("the archive has %q, which is no job's", header.Name)
	case rest != "" && !filepath.IsLocal(filepath.FromSlash(rest)):
		return 0, "", fmt.Errorf("the archive has %q, which would lead out of the directory", header.Name)
	case header.Typeflag != tar.TypeReg && header.Typeflag != tar.TypeDir || header.Typeflag == tar.TypeReg && rest == "":
		return 0, "", fmt.Errorf("the archive has %q, which is neither a file nor a directory", header.Name)
	}
	return proc, filepath.FromSlash(rest), nil
}

// begin tells whether a job is there already.
func (l *landing) begin(proc int) (skip bool, err error) {
	name := strconv.Itoa(proc)
	_, err = l.root.Lstat(name)
	switch {
	case err == nil && l.same && !l.force:
		l.there++
		return true, nil
	case err == nil && !l.force:
		return false, fmt.Errorf("%s is there already: choose another directory, or say --force", filepath.Join(l.root.Name(), name))
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return false, err
	}
	if err := l.root.RemoveAll(part(proc)); err != nil {
		return false, err
	}
	return false, l.root.Mkdir(part(proc), 0o777)
}

// place writes one file or directory.
func (l *landing) place(name string, header *tar.Header, r io.Reader) error {
	if header.Typeflag == tar.TypeDir {
		return local(l.root.MkdirAll(name, 0o777))
	}
	if err := l.root.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return errHere{err}
	}
	mode := fs.FileMode(0o666)
	if header.Mode&0o100 != 0 {
		mode = 0o777
	}
	file, err := l.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return errHere{err}
	}
	_, err = copyTo(file, r)
	if closing := file.Close(); err == nil {
		err = local(closing)
	}
	if err == nil {
		err = local(l.root.Chtimes(name, header.ModTime, header.ModTime))
	}
	return err
}

// local marks an error of this side, if it is one.
func local(err error) error {
	if err != nil {
		return errHere{err}
	}
	return nil
}

// land gives a complete job its name, and its streams theirs where it has no files that are called so.
func (l *landing) land(proc int) error {
	name := strconv.Itoa(proc)
	for from, to := range map[string]string{output.Stdout: "stdout", output.Stderr: "stderr"} {
		from, to = filepath.Join(part(proc), from), filepath.Join(part(proc), to)
		if _, err := l.root.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := l.root.Rename(from, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if l.force {
		if err := l.root.RemoveAll(name); err != nil {
			return err
		}
	}
	if err := l.root.Rename(part(proc), name); err != nil {
		return err
	}
	l.came++
	return nil
}
