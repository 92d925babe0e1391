package inputs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"htc.cern.ch/htcd/api/items"
	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/artifact"
	"htc.cern.ch/htcd/internal/inputs/jobsecrets"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Jobs knows the HTCJobs.
type Jobs interface {
	// HTCJob returns the present version of an object, nil if there is none.
	HTCJob(namespace, name string) *v1alpha1.HTCJob
	// FailedProcs returns the procs of an attempt that did not succeed.
	FailedProcs(ctx context.Context, uid string, attempt int) (map[int]bool, error)
}

// Store opens the output that HTCJobs brought back.
type Store interface {
	Open(a output.Attempt, proc int, file string) (*os.File, error)
}

// Uploads knows the files that users have uploaded.
type Uploads interface {
	// Path is where an upload is, if there is one. The file never changes.
	Path(namespace, name string) (string, error)
}

// Bringer brings inputs.
type Bringer struct {
	ConfigMaps ConfigMaps
	Secrets    Secrets
	Jobs       Jobs
	Store      Store
	Artifacts  *artifact.Turn
	Uploads    Uploads
	Max        int64    // bytes of one HTCJob, counted for every proc that gets them; 0: no limit
	Missing    string   // name of the input that was waited for: while it still is, no other is asked for
	Items      []string // of the procs, as lines NAME=value; none: they have no items
}

// maxFiles bounds how many files an HTCJob's procs get together: each is an inode of the schedd's spool.
const maxFiles = 500_000

// Ready are the inputs of an HTCJob of which every source is there.
type Ready struct {
	ctx     context.Context // of Resolve
	files   []file
	procs   int      // directories of their own, 0 to procs-1
	shared  bool     // there is a directory for all
	own     []string // further directories: see Together
	bytes   int64
	fetches []string // artifacts
}

// file is one that will be staged.
type file struct {
	path    string // below .in
	mode    fs.FileMode
	size    int64
	version string // of a Secret's object, in place of a digest of its content; empty: none
	content []byte
	open    func() (io.ReadCloser, error) // in place of content
	link    *upload                       // in place of both
}

// Resolve returns the inputs of an HTCJob of so many procs. Its errors are *Waiting, *Failed, of kind schedd.Refused,
// ErrStopped, or passing ones of the apiserver, the ledger or the volume.
func (b Bringer) Resolve(ctx context.Context, job *v1alpha1.HTCJob, queue int) (*Ready, error) {
	ready, err := b.resolve(ctx, job, queue)
	return ready, stopped(ctx, err)
}

func (b Bringer) resolve(ctx context.Context, job *v1alpha1.HTCJob, queue int) (*Ready, error) {
	get := func(name string) *v1alpha1.HTCJob { return b.Jobs.HTCJob(job.Namespace, name) }
	if err := acyclic(job, get); err != nil {
		return nil, err
	}
	r := &Ready{ctx: ctx}
	var waits error
	sources := map[string]Source{}
	read := reading{ctx: ctx, maps: b.ConfigMaps, secrets: b.Secrets, namespace: job.Namespace}
	for _, in := range b.order(job.Spec.Inputs) {
		var err error
		switch {
		case in.URL != "": // the execute node fetches it
		case in.ConfigMapKeyRef != nil && PerProc(in):
			err = b.addKeys(r, &read, in, queue)
		case in.ConfigMapKeyRef != nil:
			f, missing := read.configMap(*in.ConfigMapKeyRef)
			err = r.add(in, shared, f, missing)
		case in.SecretKeyRef != nil:
			f, missing := read.secret(*in.SecretKeyRef)
			err = r.add(in, shared, f, missing)
		case in.Upload != "":
			f, missing := b.upload(job.Namespace, in.Upload)
			err = r.add(in, shared, f, missing)
		case in.JobRef != nil:
			s := Judge(in.JobRef.Name, get(in.JobRef.Name))
			sources[in.Name] = s
			err = ready(in, s, queue)
		}
		w, is := errors.AsType[*Waiting](err)
		if is {
			w.Input = in.Name
		}
		switch {
		case err != nil && !is, is && !w.Usual && in.Name == b.Missing:
			return nil, err
		// What somebody has to mend is said first.
		case is && (waits == nil || waits.(*Waiting).Usual && !w.Usual):
			waits = err
		}
	}
	if waits != nil {
		return nil, waits
	}
	for _, in := range job.Spec.Inputs {
		var err error
		switch {
		case in.JobRef != nil:
			err = b.addOutput(ctx, r, job.Namespace, in, sources[in.Name], get, queue)
		case in.Artifact != "":
			err = b.addArtifact(ctx, r, job, in)
		}
		if err != nil {
			return nil, err
		}
		switch {
		case in.URL != "":
		case PerProc(in):
			r.procs = queue
		default:
			r.shared = true
		}
	}
	return r, r.fits(b.Max, queue)
}

// order returns the inputs with the missing one in front.
func (b Bringer) order(all []v1alpha1.Input) []v1alpha1.Input {
	i := slices.IndexFunc(all, func(in v1alpha1.Input) bool { return in.Name == b.Missing })
	if i <= 0 {
		return all
	}
	return slices.Concat(all[i:i+1], all[:i], all[i+1:])
}

// item is that of a proc.
func (b Bringer) item(proc int) string {
	if proc < len(b.Items) {
		return b.Items[proc]
	}
	return ""
}

// addKeys adds what each proc gets from a ConfigMap.
func (b Bringer) addKeys(r *Ready, read *reading, in v1alpha1.Input, queue int) error {
	for proc := range queue {
		ref := *in.ConfigMapKeyRef
		var err error
		if ref.Key, err = items.Fill(ref.Key, proc, b.item(proc)); err != nil {
			return condor.Refusal("spec.inputs: %s: key: %w", in.Name, err)
		}
		if ref.Key == "" {
			continue
		}
		if err := checkKey(ref, keyRE); err != nil {
			return condor.Refusal("spec.inputs: %s: job %d: %w", in.Name, proc, err)
		}
		f, missing := read.configMap(ref)
		if err := r.add(in, strconv.Itoa(proc), f, missing); err != nil {
			return err
		}
	}
	return nil
}

// add adds the result of reading a key, for the procs of a directory. Without one, and without an error, there is none.
func (r *Ready) add(in v1alpha1.Input, dir string, f *file, err error) error {
	if missing, is := errors.AsType[*Waiting](err); is && in.Optional {
		switch missing.Reason {
		case ReasonConfigMapNotFound,
			ReasonConfigMapKeyNotFound,
			ReasonUploadNotFound,
			jobsecrets.ReasonNotFound,
			jobsecrets.ReasonNoKey:
			return nil
		}
	}
	if err != nil {
		if w, is := errors.AsType[*Waiting](err); is {
			return &Waiting{Reason: w.Reason, Message: in.Name + ": " + w.Message}
		}
		return fmt.Errorf("%s: %w", in.Name, err)
	}
	if f.path = path.Join(dir, in.Name); f.link == nil {
		f.size = int64(len(f.content))
	}
	return r.keep(*f)
}

// keep adds a file, unless there are more already than fits could allow.
func (r *Ready) keep(f file) error {
	if r.files = append(r.files, f); len(r.files) > maxFiles {
		return condor.Refusal(
			"spec.inputs: they are more than the %d files that one HTCJob may bring: pack them into one, or make it several HTCJobs",
			maxFiles,
		)
	}
	return nil
}

// ready reports, by an error, why the output of an HTCJob is not there, or not as the input needs it.
func ready(in v1alpha1.Input, s Source, queue int) error {
	ref := in.JobRef
	switch {
	case s.Stand == Absent:
		return waiting(ReasonHTCJobNotFound, "%s: %s", in.Name, s.Why)
	case s.Stand == Unfinished:
		return &Waiting{Reason: ReasonHTCJobNotEnded, Message: in.Name + ": " + s.Why, Usual: true}
	// as it may run again: whether this one comes before or after that makes no difference
	case s.Stand == Broken && !in.Optional:
		return waiting(
			ReasonHTCJobFailed,
			"%s: %s; mend that one and run it again, with the annotation %s, or set optional",
			in.Name,
			s.Why,
			v1alpha1.RerunAnnotation,
		)
	case s.Stand == Unkept && !in.Optional:
		return failed("%s: %s", in.Name, s.Why)
	case s.Procs == 0: // it never ran, and the file is optional
		return nil
	case ref.Proc == nil && s.Procs > 1:
		return condor.Refusal(
			"spec.inputs: %s: the HTCJob %s has %d jobs: write in jobRef.proc whose file is meant: Same, All or a number",
			in.Name,
			ref.Name,
			s.Procs,
		)
	case ofSame(in) && s.Procs != queue:
		return condor.Refusal(
			"spec.inputs: %s: with proc Same both HTCJobs need equally many jobs: this one has %d, and %s has %d",
			in.Name,
			queue,
			ref.Name,
			s.Procs,
		)
	}
	return nil
}

// addOutput adds what an HTCJob brought back.
func (b Bringer) addOutput(
	ctx context.Context,
	r *Ready,
	namespace string,
	in v1alpha1.Input,
	s Source,
	get func(string) *v1alpha1.HTCJob,
	queue int,
) error {
	if s.Procs == 0 {
		return nil
	}
	ref := in.JobRef
	var broken map[int]bool
	if s.Stand == Broken || s.Stand == Unkept {
		var err error
		if broken, err = b.Jobs.FailedProcs(ctx, s.UID, s.Attempt); err != nil {
			return fmt.Errorf("%s: which jobs of %s have failed: %w", in.Name, ref.Name, err)
		}
	}
	one := func(proc int, left, at string) error {
		if proc >= s.Procs {
			if in.Optional {
				return nil
			}
			return failed("%s: the HTCJob %s has no job %d, only %d", in.Name, ref.Name, proc, s.Procs)
		}
		if broken[proc] {
			return nil
		}
		attempt := output.Attempt{Namespace: namespace, Name: ref.Name, Number: s.Attempt}
		open := func() (*os.File, error) { return b.Store.Open(attempt, proc, left) }
		size, err := sizeOf(open)
		switch {
		case isMissing(err) && Judge(ref.Name, get(ref.Name)) != s: // it was deleted or run again at this moment
			return waiting(ReasonHTCJobNotEnded, "%s: the HTCJob %s has changed", in.Name, ref.Name)
		case isMissing(err) && in.Optional:
			return nil
		case isMissing(err):
			return failed(
				"%s: job %d of the HTCJob %s has left no file %q: see what it has left with htcd get-output %s",
				in.Name,
				proc,
				ref.Name,
				left,
				ref.Name,
			)
		case errors.Is(err, output.ErrNotRegular):
			return failed(
				"%s: %q of job %d of the HTCJob %s is no file: name files, or pack the directory into one",
				in.Name,
				left,
				proc,
				ref.Name,
			)
		case err != nil:
			return fmt.Errorf("%s: %w", in.Name, err)
		}
		return r.keep(file{path: at, mode: 0o644, size: size, open: func() (io.ReadCloser, error) { return open() }})
	}
	switch {
	case PerProc(in):
		for proc := range queue {
			left, err := items.Fill(ref.Path, proc, b.item(proc))
			switch {
			case err != nil:
				return condor.Refusal("spec.inputs: %s: path: %w", in.Name, err)
			case left == "":
				continue
			case !isPath(left):
				return condor.Refusal(
					"spec.inputs: %s: job %d: path %q: expected a relative path without '.', '..' and control characters",
					in.Name,
					proc,
					left,
				)
			}
			of := proc
			if !ofSame(in) && ref.Proc != nil {
				of = ref.Proc.IntValue()
			} else if !ofSame(in) {
				of = 0
			}
			if err := one(of, left, path.Join(strconv.Itoa(proc), in.Name)); err != nil {
				return err
			}
		}
		return nil
	case isProc(ref.Proc, v1alpha1.ProcAll):
		for proc := range s.Procs {
			if err := one(proc, ref.Path, path.Join(shared, in.Name, strconv.Itoa(proc))); err != nil {
				return err
			}
		}
		return nil
	case ref.Proc == nil:
		return one(0, ref.Path, path.Join(shared, in.Name))
	}
	return one(ref.Proc.IntValue(), ref.Path, path.Join(shared, in.Name))
}

func sizeOf(open func() (*os.File, error)) (int64, error) {
	f, err := open()
	if err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err = cmp.Or(err, f.Close()); err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// isMissing reports whether there is no file of that name.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG)
}

// fits refuses inputs that are too large: HTCondor copies each file for every proc that gets it.
func (r *Ready) fits(most int64, queue int) error {
	var total, count int64
	for _, f := range r.files {
		copies := int64(1)
		if strings.HasPrefix(f.path, shared+"/") {
			copies = int64(queue)
		}
		r.bytes += f.size
		total += f.size * copies
		count += copies
	}
	const instead = "let the jobs fetch it by a URL or from a shared file system, or make it several HTCJobs"
	switch {
	case most > 0 && total > most:
		return condor.Refusal(
			"spec.inputs: %d MiB, counted for each of %d jobs, are more than the %d MiB that one HTCJob may bring here (--max-input): %s",
			(total+1<<20-1)>>20,
			queue,
			most>>20,
			instead,
		)
	case count > maxFiles:
		return condor.Refusal(
			"spec.inputs: %d files, counted for each of %d jobs, are more than the %d that one HTCJob may bring: pack them into one, or make it several HTCJobs",
			count,
			queue,
			maxFiles,
		)
	}
	return nil
}
