package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/cli/setting"
)

// manager is the field manager: applying the same file again has the same owner.
const manager = "htcd-submit"

func submitCommand() *cobra.Command {
	var at Connection
	var watch bool
	c := &cobra.Command{
		Use:   "submit FILE | -f FILE",
		Short: "Apply the HTCJobs of a file, and wait for their end",
		Long: `Apply the HTCJobs of a YAML or JSON file, - for the standard input, as kubectl apply --server-side would. An
object with generateName is created each time. One that already agrees with the file is called unchanged: nothing
is run again because of it.

With --input, which can be repeated, the jobs find a small file of yours in the script's directory, under its own
name or as NAME=FILE. The files go into an immutable ConfigMap that belongs to the HTCJob and is deleted with it:
1 MiB for all of them. A file with another content changes the HTCJob's spec, so that it runs again.

A submit description file of HTCondor, FILE.sub, is converted before, as htcd convert does, with the same flags; its files belong to the HTCJob,
too. If something of it would be lost, nothing is submitted.

With --dry-run the apiserver checks everything and keeps nothing. With --name-only the standard output is the names of the HTCJobs, one a line, for
scripts.

It waits up to 2 s for HTCondor, or htcd's administrator, to refuse them, and says why. Afterwards kubectl describe htcjob shows it.

With --watch it waits until all have ended; one that had ended and is unchanged keeps its result. On a terminal a line shows how many
jobs are idle, running, done, failed and held; elsewhere only hold reasons and the result are shown. An interrupt leaves the jobs as
they are. Exit codes:

  0    all have succeeded; without --watch: all are applied, and none was refused at once
  N    jobs have failed, those that are known all with the return code N of the script
  1    jobs have failed otherwise, or were removed or refused, or something could not be done
  2    a mistake in the command line
  130  interrupted`,
	}
	var converted conversion
	var dryRun, nameOnly bool
	var file string
	var inputs []string
	c.Args = func(cmd *cobra.Command, args []string) error {
		switch {
		case file != "":
			return arguments(0, "no argument beside -f")(cmd, args)
		case len(args) > 1 && len(inputs) > 0:
			return arguments(1, "one file with HTCJobs, and --input before each of the others")(cmd, args)
		}
		return arguments(1, "a file")(cmd, args)
	}
	at.Flags(c.Flags())
	setting.Text(c.Flags(), &file, "filename,f", "", setting.Path, "the file, as in kubectl")
	setting.Repeated(c.Flags(), &inputs, "input", setting.Path, "give the jobs this small `FILE`, or NAME=FILE; can be repeated")
	converted.flags(c.Flags())
	setting.Bool(c.Flags(), &watch, "watch,w", false, "wait until the jobs have ended, and end as they did")
	setting.Bool(c.Flags(), &dryRun, "dry-run", false, "have the apiserver check the HTCJobs, and submit nothing")
	setting.Bool(c.Flags(), &nameOnly, "name-only", false, "print only the names of the HTCJobs")
	c.MarkFlagsMutuallyExclusive("dry-run", "watch")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			file = args[0]
		}
		manifests, bundles, err := submitted(file, cmd, &converted)
		if err != nil {
			return err
		}
		files, err := readInputs(inputs)
		if err != nil {
			return err
		}
		where, err := at.open(cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		if dryRun {
			where.dryRun = []string{metav1.DryRunAll}
		}
		var jobs []*v1alpha1.HTCJob
		for i, m := range manifests {
			var bundled []corev1.ConfigMap
			if bundles != nil {
				bundled = bundles[i]
			}
			before := where.before(cmd.Context(), m)
			job, err := where.applyWith(cmd.Context(), m, files, bundled, before)
			if err != nil {
				return err
			}
			done := "submitted"
			if same(before, job) {
				done = "unchanged"
			}
			line := fullName(job.Name) + " " + done
			switch {
			case nameOnly:
				line = job.Name
			case dryRun:
				line += " (dry run)"
			}
			fmt.Fprintln(cmd.OutOrStdout(), line)
			if watch && done == "unchanged" && over(job, job) {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s has ended already; to run it again: kubectl annotate htcjob -n %s %s --overwrite %s=\"$(date)\"\n",
					job.Name, where.namespace, job.Name, v1alpha1.RerunAnnotation)
			}
			jobs = append(jobs, job)
		}
		switch {
		case dryRun:
			return nil
		case !watch:
			return where.refused(cmd.Context(), jobs, cmd.ErrOrStderr())
		}
		return where.wait(cmd.Context(), jobs, displayOn(cmd.ErrOrStderr()))
	}
	return c
}

// submitted reads what is to be submitted: HTCJobs, and the ConfigMaps of each if they are made of a submit description file.
func submitted(file string, cmd *cobra.Command, by *conversion) ([]manifest, [][]corev1.ConfigMap, error) {
	if isSubmitFile(file) {
		return by.manifests(file, cmd.ErrOrStderr())
	}
	if isDAGFile(file) {
		return nil, nil, setting.Usage{Err: fmt.Errorf("%s becomes an HTCWorkflow: htcd convert %s -o DIR, and kubectl apply -f DIR", file, file)}
	}
	text, err := read(file, cmd.InOrStdin())
	if err != nil {
		return nil, nil, err
	}
	manifests, err := split(text)
	if err != nil {
		return nil, nil, setting.Usage{Err: fmt.Errorf("%s: %w", file, err)}
	}
	return manifests, nil, nil
}

// maxManifests is far more than a file with HTCJobs needs: Kubernetes accepts 3 MiB for each.
const maxManifests = 16 << 20

func read(file string, stdin io.Reader) ([]byte, error) {
	var text []byte
	var err error
	if file == "-" {
		text, err = readAtMost(stdin, maxManifests)
	} else {
		text, err = readFile(file, maxManifests)
	}
	if errors.Is(err, errTooLarge) {
		return nil, fmt.Errorf("%s has more than %d MiB, which no file of HTCJobs needs: is it an input? spec.inputs names such, as a url or an artifact, and --input gives small files to the jobs", file, maxManifests>>20)
	}
	return text, err
}

// manifest is one object as it stands in a file.
type manifest struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata"`
	text            []byte
}

// split separates the HTCJobs of a file. Anything else in it is a mistake: its author would miss it.
func split(text []byte) ([]manifest, error) {
	all, err := objects(text)
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		if m.is(v1alpha1.WorkflowKind) {
			return nil, fmt.Errorf("HTCWorkflow %s: only HTCJobs can be submitted; use kubectl apply -f, then htcd nodes and htcd logs --step", m.Metadata.Name)
		}
		if !m.is(v1alpha1.Kind) {
			return nil, fmt.Errorf("%s %s: only HTCJobs of %s can be submitted", m.APIVersion, m.Kind, v1alpha1.GroupVersion)
		}
		if m.Metadata.Name == "" && m.Metadata.GenerateName == "" {
			return nil, errors.New("an HTCJob without metadata.name or metadata.generateName")
		}
	}
	if len(all) == 0 {
		return nil, errors.New("there is no HTCJob in it")
	}
	return all, nil
}

// is reports whether it is of that kind, of htcd.
func (m manifest) is(kind string) bool {
	return m.APIVersion == v1alpha1.GroupVersion.String() && m.Kind == kind
}

// objects separates the objects of a file, of whatever kind.
func objects(text []byte) (all []manifest, err error) {
	for documents := utilyaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(text))); ; {
		document := make([]byte, len(text)+1)
		n, err := documents.Read(document)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		object, err := yaml.YAMLToJSONStrict(document[:n])
		if err != nil {
			return nil, err
		}
		if string(object) == "null" {
			continue
		}
		m := manifest{text: object}
		if err := json.Unmarshal(object, &m); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
}

// before is the object before it is applied; nil if it does not exist or cannot be read.
func (c *cluster) before(ctx context.Context, m manifest) *v1alpha1.HTCJob {
	if m.Metadata.Name == "" {
		return nil
	}
	job, err := c.jobs.Get(ctx, m.Metadata.Name, metav1.GetOptions{})
	if err != nil {
		return nil // apply reports the error
	}
	return job
}

// same reports whether applying changed nothing that a user writes. The resourceVersion does not show it: the status is
// written meanwhile.
func same(before, after *v1alpha1.HTCJob) bool {
	return before != nil && before.UID == after.UID && before.Generation == after.Generation &&
		maps.Equal(before.Labels, after.Labels) && maps.Equal(before.Annotations, after.Annotations)
}

// apply makes the object what the manifest says.
func (c *cluster) apply(ctx context.Context, m manifest) (*v1alpha1.HTCJob, error) {
	if m.Metadata.Namespace != "" && m.Metadata.Namespace != c.namespace {
		return nil, fmt.Errorf("HTCJob %s is of namespace %s: say -n %s", m.Metadata.Name, m.Metadata.Namespace, m.Metadata.Namespace)
	}
	if m.Metadata.Name == "" {
		var job v1alpha1.HTCJob
		if err := yaml.UnmarshalStrict(m.text, &job); err != nil {
			return nil, err
		}
		return c.jobs.Create(ctx, &job, metav1.CreateOptions{FieldManager: manager, DryRun: c.dryRun})
	}
	force := true
	return c.jobs.Patch(ctx, m.Metadata.Name, types.ApplyPatchType, m.text,
		metav1.PatchOptions{FieldManager: manager, Force: &force, FieldValidation: metav1.FieldValidationStrict, DryRun: c.dryRun})
}

// wait shows the progress of the jobs until all have ended, and ends with their exit code.
func (c *cluster) wait(ctx context.Context, jobs []*v1alpha1.HTCJob, d *display) error {
	d.jobs = slices.Clone(jobs)
	group, watching := errgroup.WithContext(ctx)
	for i, job := range jobs {
		group.Go(func() error {
			return c.follow(watching, job, func(now *v1alpha1.HTCJob) { d.show(i, now) }, d.say)
		})
	}
	err := group.Wait()
	d.finish()
	switch {
	case ctx.Err() != nil:
		d.say("the jobs continue: kubectl get htcjobs -n %s shows them, kubectl delete htcjob removes them", c.namespace)
		return Exit{ExitInterrupted}
	case err != nil:
		return err
	}
	if code := exitCode(d.jobs); code != 0 {
		return Exit{code}
	}
	return nil
}
