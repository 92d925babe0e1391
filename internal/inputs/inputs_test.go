package inputs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/inputs/jobsecrets"
	"htc.cern.ch/htcd/internal/inputs/uploads"
	"htc.cern.ch/htcd/internal/output"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/submit"
)

// world has everything that inputs come from.
type world struct {
	t       *testing.T
	jobs    map[string]*v1alpha1.HTCJob
	maps    map[string]*corev1.ConfigMap
	secrets map[string]string
	failed  map[int]bool
	asked   []string // ConfigMaps
	store   output.Store
	uploads uploads.Store
}

func newWorld(t *testing.T) *world {
	return &world{
		t:       t,
		jobs:    map[string]*v1alpha1.HTCJob{},
		maps:    map[string]*corev1.ConfigMap{},
		secrets: map[string]string{},
		store:   output.Store{Root: t.TempDir()},
		uploads: uploads.Store{Root: t.TempDir()},
	}
}

func (w *world) HTCJob(_, name string) *v1alpha1.HTCJob { return w.jobs[name] }

func (w *world) FailedProcs(context.Context, string, int) (map[int]bool, error) { return w.failed, nil }

func (w *world) ConfigMap(_ context.Context, _, name string) (*corev1.ConfigMap, error) {
	w.asked = append(w.asked, name)
	if m := w.maps[name]; m != nil {
		return m, nil
	}
	group := schema.GroupResource{Resource: "configmaps"}
	switch name {
	case "denied":
		return nil, apierrors.NewForbidden(group, name, nil)
	case "broken":
		return nil, apierrors.NewInternalError(errors.New("broken"))
	}
	return nil, apierrors.NewNotFound(group, name)
}

func (w *world) Read(_ context.Context, _, name, key string, _ int) ([]byte, error) {
	content, is := w.secrets[name+"/"+key]
	if !is {
		return nil, &jobsecrets.Unusable{Reason: jobsecrets.ReasonNotFound, Message: "there is none"}
	}
	return []byte(content), nil
}

func (w *world) Version(_ context.Context, _, name string) (string, error) {
	return "version of " + name, nil
}

func (w *world) bringer() Bringer {
	return Bringer{ConfigMaps: w, Secrets: w, Jobs: w, Store: w.store, Uploads: &w.uploads, Max: 1 << 20}
}

// ended adds an HTCJob that has succeeded, whose procs left these files of the name out.
func (w *world) ended(name string, contents ...string) *v1alpha1.HTCJob {
	for proc, content := range contents {
		dir, err := w.store.ProcDir(output.Attempt{Namespace: "physics", Name: name, Number: 2}, proc)
		require.NoError(w.t, err)
		require.NoError(w.t, os.MkdirAll(filepath.Join(dir, "dir"), 0o700))
		if content != "" {
			require.NoError(w.t, os.WriteFile(filepath.Join(dir, "out"), []byte(content), 0o600))
		}
	}
	w.jobs[name] = &v1alpha1.HTCJob{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: 1},
		Status: v1alpha1.HTCJobStatus{
			Phase:              v1alpha1.PhaseSucceeded,
			Succeeded:          int32(len(contents)),
			Attempt:            2,
			ClusterID:          7,
			ObservedGeneration: 1,
			Conditions: []metav1.Condition{
				{Type: v1alpha1.ConditionOutputFetched, Status: metav1.ConditionTrue, Reason: "Fetched"},
			},
		},
	}
	return w.jobs[name]
}

func needs(inputs ...v1alpha1.Input) *v1alpha1.HTCJob {
	return &v1alpha1.HTCJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "physics", Name: "me"},
		Spec:       v1alpha1.HTCJobSpec{Inputs: inputs},
	}
}

func from(name string, proc any) *v1alpha1.JobRef {
	ref := &v1alpha1.JobRef{Name: name, Path: "out"}
	switch p := proc.(type) {
	case int:
		ref.Proc = new(intstr.FromInt(p))
	case string:
		ref.Proc = new(intstr.FromString(p))
	}
	return ref
}

func key(name, key string) *v1alpha1.KeyRef { return &v1alpha1.KeyRef{Name: name, Key: key} }

// staged lists the files of a run with their modes and contents.
func staged(t *testing.T, dir string) map[string]string {
	files := map[string]string{}
	root := filepath.Join(dir, submit.InputsDir)
	require.NoError(t, filepath.WalkDir(root, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		require.NoError(t, err)
		text, err := os.ReadFile(name)
		rel, _ := filepath.Rel(root, name)
		files[rel] = fmt.Sprintf("%o %s", info.Mode().Perm(), text)
		return err
	}))
	return files
}

func TestInputsOfEveryKind(t *testing.T) {
	w := newWorld(t)
	w.maps["fit"] = &corev1.ConfigMap{
		Data:       map[string]string{"text": "hello"},
		BinaryData: map[string][]byte{"bytes": {0xff}},
	}
	w.secrets["db/password"] = "1234"
	w.ended("prep", "zero", "one")
	w.ended("single", "only")
	job := needs(
		v1alpha1.Input{
			Name:            "a",
			ConfigMapKeyRef: key("fit", "text"),
		},
		v1alpha1.Input{Name: "b", ConfigMapKeyRef: key("fit", "bytes")},
		v1alpha1.Input{
			Name:            "none",
			ConfigMapKeyRef: key("fit", "none"),
			Optional:        true,
		},
		v1alpha1.Input{Name: "pass", SecretKeyRef: key("db", "password")},
		v1alpha1.Input{Name: "same", JobRef: from("prep", "Same")},
		v1alpha1.Input{Name: "all", JobRef: from("prep", "All")},
		v1alpha1.Input{Name: "number", JobRef: from("prep", 1)},
		v1alpha1.Input{Name: "single", JobRef: from("single", nil)},
		v1alpha1.Input{Name: "beyond", JobRef: from("prep", 2), Optional: true},
	)
	ready, err := w.bringer().Resolve(t.Context(), job, 2)
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "run")
	digest, err := ready.Stage(dir)
	require.NoError(t, err)
	require.Equal(t, map[string]string{
		"shared/a":      "644 hello",
		"shared/b":      "644 \xff",
		"shared/pass":   "600 1234",
		"0/same":        "644 zero",
		"1/same":        "644 one",
		"shared/all/0":  "644 zero",
		"shared/all/1":  "644 one",
		"shared/number": "644 one",
		"shared/single": "644 only",
	}, staged(t, dir))
	require.Regexp(t, `^sha256:[0-9a-f]{64}$`, digest)

	again, err := Staged(dir)
	require.NoError(t, err)
	require.Equal(t, digest, again)
	repeated, err := ready.Stage(dir)
	require.NoError(t, err)
	require.Equal(t, digest, repeated)

	// A Secret counts by its version, not by its content, which could be guessed.
	w.secrets["db/password"] = "4321"
	ready, err = w.bringer().Resolve(t.Context(), job, 2)
	require.NoError(t, err)
	other, err := ready.Stage(dir)
	require.NoError(t, err)
	require.Equal(t, digest, other)
	w.maps["fit"].Data["text"] = "changed"
	ready, err = w.bringer().Resolve(t.Context(), job, 2)
	require.NoError(t, err)
	other, err = ready.Stage(dir)
	require.NoError(t, err)
	require.NotEqual(t, digest, other)

	// What is not whole does not count.
	for _, spoil := range []func() error{
		func() error { return os.WriteFile(filepath.Join(dir, ".in/shared/pass"), []byte("x"), 0o600) },
		func() error { return os.Remove(filepath.Join(dir, ".in/0/same")) },
		func() error { return os.Remove(filepath.Join(dir, manifest)) },
		func() error { return os.WriteFile(filepath.Join(dir, manifest), []byte("{"), 0o600) },
		func() error { return os.RemoveAll(filepath.Join(dir, ".in")) },
	} {
		_, err := ready.Stage(dir)
		require.NoError(t, err)
		require.NoError(t, spoil())
		digest, err := Staged(dir)
		require.NoError(t, err)
		require.Empty(t, digest)
	}
	require.NoError(t, remove(dir))
	require.NoError(t, remove(dir))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestEachJobGetsTheFileOfItsItem(t *testing.T) {
	w := newWorld(t)
	w.maps["towns"] = &corev1.ConfigMap{Data: map[string]string{"arno.csv": "a", "bree.csv": "b", "2": "two"}}
	w.ended("prep", "zero", "one", "two")
	path := from("prep", 1)
	path.Path = "{{item.LEFT}}"
	job := needs(
		v1alpha1.Input{
			Name:            "town",
			ConfigMapKeyRef: key("towns", "{{item.TOWN}}.csv"),
		},
		v1alpha1.Input{Name: "number", ConfigMapKeyRef: key("towns", "{{proc}}"), Optional: true},
		v1alpha1.Input{Name: "left", JobRef: path},
	)
	b := w.bringer()
	b.Items = []string{"TOWN=bree\nLEFT=\n", "TOWN=arno\nLEFT=out\n", "TOWN=bree\nLEFT=\n"}
	ready, err := b.Resolve(t.Context(), job, 3)
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "run")
	_, err = ready.Stage(dir)
	require.NoError(t, err)
	require.Equal(t, map[string]string{
		"0/town": "644 b", "1/town": "644 a", "2/town": "644 b", "2/number": "644 two", "1/left": "644 one",
	}, staged(t, dir))
	require.Equal(t, []string{"towns"}, w.asked)

	b.Items[2] = "TOWN=../x\nLEFT=../../etc/passwd\n"
	_, err = b.Resolve(t.Context(), job, 3)
	require.ErrorContains(t, err, `spec.inputs: town: job 2: key "../x.csv": expected letters`)
	_, err = b.Resolve(t.Context(), needs(job.Spec.Inputs[2]), 3)
	require.ErrorContains(t, err, `spec.inputs: left: job 2: path "../../etc/passwd": expected a relative path`)
	b.Items = nil
	_, err = b.Resolve(t.Context(), job, 3)
	require.ErrorContains(
		t,
		err,
		"spec.inputs: town: key: found {{item.TOWN}}, and the item of job 0 has no variable TOWN",
	)
	require.Equal(t, condor.Refused, condor.KindOf(err))
}

func TestNoMoreFilesAreGatheredThanAnHTCJobMayBring(t *testing.T) {
	w := newWorld(t)
	w.maps["towns"] = &corev1.ConfigMap{Data: map[string]string{"a": "b"}}
	var all []v1alpha1.Input
	for i := range 100 {
		all = append(all, v1alpha1.Input{Name: fmt.Sprint(i), ConfigMapKeyRef: key("towns", "a{{item.NONE}}")})
	}
	b := w.bringer()
	b.Items = slices.Repeat([]string{"NONE=\n"}, 100_000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := b.Resolve(t.Context(), needs(all...), len(b.Items))
	runtime.ReadMemStats(&after)
	require.Equal(t, condor.Refused, condor.KindOf(err))
	require.ErrorContains(t, err, "spec.inputs: they are more than the 500000 files that one HTCJob may bring")
	require.Less(
		t,
		after.TotalAlloc-before.TotalAlloc,
		uint64(2<<30),
		"of ten million files it would be ten times that",
	)
}

func TestWhatIsWaitedForFailsOrIsRefused(t *testing.T) {
	w := newWorld(t)
	w.maps["kept"] = &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{jobsecrets.Label: "false"}},
		Data:       map[string]string{"a": "b"},
	}
	w.maps["large"] = &corev1.ConfigMap{Data: map[string]string{"a": strings.Repeat("a", 1<<20)}}
	w.ended("prep", "zero", "", "two")
	running := w.ended("running", "x")
	running.Status.Phase = v1alpha1.PhaseRunning
	broken := w.ended("broken", "x", "y")
	broken.Status.Phase, broken.Status.Succeeded, broken.Status.Failed = v1alpha1.PhaseFailed, 1, 1
	broken.Status.Conditions = append(
		broken.Status.Conditions,
		metav1.Condition{Type: v1alpha1.ConditionFailed, Message: "1 of 2 jobs failed"},
	)
	w.failed = map[int]bool{1: true}
	deleted := w.ended("deleted", "x")
	deleted.DeletionTimestamp = new(metav1.Now())
	loop := w.ended("loop")
	loop.Status.Phase = v1alpha1.PhasePending
	loop.Spec.Inputs = []v1alpha1.Input{{Name: "a", JobRef: from("loop2", nil)}}
	loop2 := w.ended("loop2")
	loop2.Status.Phase = v1alpha1.PhasePending
	loop2.Spec.Inputs = []v1alpha1.Input{{Name: "a", JobRef: from("me", nil)}, {Name: "b", JobRef: from("loop", nil)}}
	dir := from("prep", 0)
	dir.Path = "dir"
	below := from("prep", 0)
	below.Path = "out/below"
	noUpload := uploads.Prefix + strings.Repeat("0", 64)
	for name, c := range map[string]struct {
		in            v1alpha1.Input
		kind, message string
	}{
		"no ConfigMap":                     {v1alpha1.Input{ConfigMapKeyRef: key("none", "a")}, "ConfigMapNotFound", "in: there is no configmap none in this namespace"},
		"one kept from jobs":               {v1alpha1.Input{ConfigMapKeyRef: key("kept", "a"), Optional: true}, "ConfigMapForbidden", "htc.cern.ch/jobs=false"},
		"no right":                         {v1alpha1.Input{ConfigMapKeyRef: key("denied", "a"), Optional: true}, "ConfigMapForbidden", "deploy/base/rbac"},
		"the apiserver fails":              {v1alpha1.Input{ConfigMapKeyRef: key("broken", "a"), Optional: true}, "", "read the configmap broken"},
		"no key":                           {v1alpha1.Input{ConfigMapKeyRef: key("large", "b")}, "ConfigMapKeyNotFound", "no key b"},
		"too large for all":                {v1alpha1.Input{ConfigMapKeyRef: key("large", "a")}, "Refused", "3 MiB, counted for each of 3 jobs, are more than the 1 MiB that one HTCJob may bring here (--max-input): let the jobs fetch it"},
		"no Secret":                        {v1alpha1.Input{SecretKeyRef: key("none", "a")}, "SecretNotFound", "there is none"},
		"no upload":                        {v1alpha1.Input{Upload: noUpload}, "UploadNotFound", "there is no upload " + noUpload + " in this namespace"},
		"no upload, if optional":           {v1alpha1.Input{Upload: noUpload, Optional: true}, "ok", ""},
		"no HTCJob":                        {v1alpha1.Input{JobRef: from("none", 0), Optional: true}, "HTCJobNotFound", "there is no HTCJob none in this namespace"},
		"one that is being deleted":        {v1alpha1.Input{JobRef: from("deleted", 0)}, "HTCJobNotFound", "is being deleted"},
		"one that runs":                    {v1alpha1.Input{JobRef: from("running", 0), Optional: true}, "HTCJobNotEnded", "the HTCJob running has not ended"},
		"one that failed":                  {v1alpha1.Input{JobRef: from("broken", 0)}, "HTCJobFailed", "the HTCJob broken has failed: 1 of 2 jobs failed"},
		"one that failed, if optional":     {v1alpha1.Input{JobRef: from("broken", "All"), Optional: true}, "ok", "shared/in/0"},
		"a failed job, if optional":        {v1alpha1.Input{JobRef: from("broken", 1), Optional: true}, "ok", ""},
		"no file":                          {v1alpha1.Input{JobRef: from("prep", 1)}, "InputFailed", `job 1 of the HTCJob prep has left no file "out"`},
		"no file of one":                   {v1alpha1.Input{JobRef: from("prep", "Same")}, "InputFailed", "job 1 of"},
		"no file of one, if optional":      {v1alpha1.Input{JobRef: from("prep", "Same"), Optional: true}, "ok", "0/in 2/in"},
		"no such job":                      {v1alpha1.Input{JobRef: from("prep", 3)}, "InputFailed", "has no job 3, only 3"},
		"which job":                        {v1alpha1.Input{JobRef: from("prep", nil)}, "Refused", "has 3 jobs: write in jobRef.proc whose file is meant"},
		"unequal sizes":                    {v1alpha1.Input{JobRef: from("broken", "Same"), Optional: true}, "Refused", "both HTCJobs need equally many jobs: this one has 3, and broken has 2"},
		"a directory":                      {v1alpha1.Input{JobRef: dir}, "InputFailed", `"dir" of job 0 of the HTCJob prep is no file`},
		"a path below a file":              {v1alpha1.Input{JobRef: below}, "InputFailed", "has left no file"},
		"a cycle":                          {v1alpha1.Input{JobRef: from("loop", nil)}, "Refused", "a cycle of jobRefs, in which every HTCJob waits for another: me -> loop -> loop2 -> me"},
		"a cycle of others ends somewhere": {v1alpha1.Input{JobRef: from("prep", 0)}, "ok", "shared/in"},
	} {
		t.Run(name, func(t *testing.T) {
			c.in.Name = "in"
			ready, err := w.bringer().Resolve(t.Context(), needs(c.in), 3)
			kind := ""
			if waits, is := errors.AsType[*Waiting](err); is {
				kind = waits.Reason
			} else if _, is := errors.AsType[*Failed](err); is {
				kind = "InputFailed"
			} else if condor.KindOf(err) == condor.Refused {
				kind = "Refused"
			} else if err == nil {
				kind = "ok"
				var names []string
				for _, f := range ready.files {
					names = append(names, f.path)
				}
				require.Equal(t, c.message, strings.Join(names, " "))
			}
			require.Equal(t, c.kind, kind, "%v", err)
			if err != nil {
				require.ErrorContains(t, err, c.message)
			}
		})
	}
}

// What somebody has to mend is said before what only takes time.
func TestTheFirstThingToMendIsSaid(t *testing.T) {
	w := newWorld(t)
	w.ended("running").Status.Phase = v1alpha1.PhaseRunning
	_, err := w.bringer().Resolve(
		t.Context(),
		needs(
			v1alpha1.Input{Name: "a", JobRef: from("running", nil)},
			v1alpha1.Input{Name: "b", ConfigMapKeyRef: key("none", "x")},
		),
		1,
	)
	require.EqualError(t, err, "b: there is no configmap none in this namespace")
}

// An HTCJob that waits costs one question each time, however many inputs it has.
func TestWhatWasMissingIsAskedForFirst(t *testing.T) {
	w := newWorld(t)
	w.maps["there"] = &corev1.ConfigMap{Data: map[string]string{"a": "b"}}
	job := needs(
		v1alpha1.Input{Name: "a", ConfigMapKeyRef: key("there", "a")},
		v1alpha1.Input{Name: "b", ConfigMapKeyRef: key("none", "a")},
		v1alpha1.Input{Name: "c", ConfigMapKeyRef: key("also", "a")},
	)
	_, err := w.bringer().Resolve(t.Context(), job, 1)
	waits, is := errors.AsType[*Waiting](err)
	require.True(t, is)
	require.Equal(t, "b", waits.Input)
	b := w.bringer()
	b.Missing, w.asked = waits.Input, nil
	_, err = b.Resolve(t.Context(), job, 1)
	require.ErrorContains(t, err, "no configmap none")
	require.Equal(t, []string{"none"}, w.asked)
	w.maps["none"], w.maps["also"] = w.maps["there"], w.maps["there"]
	ready, err := b.Resolve(t.Context(), job, 1)
	require.NoError(t, err)
	require.Len(t, ready.files, 3)
}

func TestConfigMapsInMemoryAreBounded(t *testing.T) {
	w := newWorld(t)
	var all []v1alpha1.Input
	for i := range 17 {
		name := fmt.Sprint("m", i)
		w.maps[name] = &corev1.ConfigMap{Data: map[string]string{"a": "small", "b": strings.Repeat("x", 1<<20)}}
		all = append(all, v1alpha1.Input{Name: name, ConfigMapKeyRef: key(name, "a")})
	}
	_, err := w.bringer().Resolve(t.Context(), needs(all...), 1)
	require.Equal(t, condor.Refused, condor.KindOf(err))
	require.ErrorContains(t, err, "more than 16 MiB together")
}

func TestWhatIsBookedForInputsIsWhatTheyTake(t *testing.T) {
	w := newWorld(t)
	w.ended("prep", strings.Repeat("x", 10_000))
	ready, err := w.bringer().Resolve(t.Context(), needs(v1alpha1.Input{Name: "a", JobRef: from("prep", nil)}), 1)
	require.NoError(t, err)
	dir := t.TempDir()
	_, err = ready.Stage(dir)
	require.NoError(t, err)
	taken, needs := output.Taken(dir), ready.Needs()
	directories := output.Room{Files: 3}
	require.True(t, needs.Plus(directories).Holds(taken), "%v are booked for %v", needs, taken)
}

func TestASourceThatVanishesBeforeItIsReadIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	w.ended("prep", "zero")
	ready, err := w.bringer().Resolve(t.Context(), needs(v1alpha1.Input{Name: "a", JobRef: from("prep", nil)}), 1)
	require.NoError(t, err)
	require.NoError(t, w.store.Drop("physics", "prep"))
	_, err = ready.Stage(t.TempDir())
	waits, is := errors.AsType[*Waiting](err)
	require.True(t, is, "%v", err)
	require.Equal(t, ReasonHTCJobNotEnded, waits.Reason)
}

func TestHowAnHTCJobStandsAsASource(t *testing.T) {
	fetched := func(status metav1.ConditionStatus, reason string) func(*v1alpha1.HTCJob) {
		return func(job *v1alpha1.HTCJob) {
			job.Status.Conditions[0].Status, job.Status.Conditions[0].Reason = status, reason
		}
	}
	for name, c := range map[string]struct {
		change func(*v1alpha1.HTCJob)
		stand  Stand
	}{
		"it has succeeded":           {func(*v1alpha1.HTCJob) {}, Succeeded},
		"its output is on its way":   {fetched(metav1.ConditionFalse, "Fetching"), Unfinished},
		"the volume is full":         {fetched(metav1.ConditionFalse, "NoSpace"), Unfinished},
		"some output is lost":        {fetched(metav1.ConditionFalse, "GivenUp"), Succeeded},
		"some files are lost":        {fetched(metav1.ConditionFalse, "Incomplete"), Succeeded},
		"it waits":                   {func(job *v1alpha1.HTCJob) { job.Status.Phase = v1alpha1.PhasePending }, Unfinished},
		"it was removed":             {func(job *v1alpha1.HTCJob) { job.Status.Phase = v1alpha1.PhaseRemoved }, Broken},
		"it was refused":             {func(job *v1alpha1.HTCJob) { job.Status.Phase, job.Status.ClusterID = v1alpha1.PhaseFailed, 0 }, Broken},
		"its spec has changed":       {func(job *v1alpha1.HTCJob) { job.Generation = 2 }, Unfinished},
		"it is to run again":         {func(job *v1alpha1.HTCJob) { job.Annotations = map[string]string{v1alpha1.RerunAnnotation: "2"} }, Unfinished},
		"an old htcd kept no output": {func(job *v1alpha1.HTCJob) { job.Status.Conditions = nil }, Unkept},
		"it is being deleted":        {func(job *v1alpha1.HTCJob) { job.DeletionTimestamp = new(metav1.Now()) }, Absent},
	} {
		job := newWorld(t).ended("prep", "x")
		c.change(job)
		require.Equal(t, c.stand, Judge("prep", job).Stand, name)
	}
}

func TestWhatTheSpecShowsToBeWrong(t *testing.T) {
	rules := Rules{Accounts: []string{"kinit-secret"}}
	path := func(p string) v1alpha1.Input {
		return v1alpha1.Input{JobRef: &v1alpha1.JobRef{Name: "prep", Path: p}}
	}
	for words, in := range map[string]v1alpha1.Input{
		"expected exactly one source": {},
		"found 2":                     {ConfigMapKeyRef: key("a", "b"), SecretKeyRef: key("a", "b")},
		"the secret kinit-secret holds an account of HTCondor": {SecretKeyRef: key("kinit-secret", "password")},
		`name "A"`:                 {ConfigMapKeyRef: key("A", "b")},
		`name "../x"`:              {SecretKeyRef: key("../x", "b")},
		`key "a/b"`:                {SecretKeyRef: key("x", "a/b")},
		"names this HTCJob itself": {JobRef: from("me", nil)},
		`path "../x"`:              path("../x"),
		`path "/x"`:                path("/x"),
		`path "a/../../x"`:         path("a/../../x"),
		`path "a/"`:                path("a/"),
		`path ".."`:                path(".."),
		`path "a\nb"`:              path("a\nb"),
		`proc "some"`:              {JobRef: from("prep", "some")},
		`proc "-1"`:                {JobRef: from("prep", -1)},
	} {
		in.Name = "in"
		err := rules.Check(needs(in))
		require.Equal(t, condor.Refused, condor.KindOf(err), words)
		require.ErrorContains(t, err, words)
	}
	require.NoError(t, rules.Check(needs(path("a b/c,$(X)"), path("_condor_stdout"))))
	require.ErrorContains(t, Rules{NoOutput: true}.Check(needs(path("a"))), "keeps no output")
	require.ErrorContains(t, rules.Check(needs(make([]v1alpha1.Input, 101)...)), "at most 100")
}
