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
	"strings"

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
		Use:   "submit FILE [NAME=VALUE...] | -f FILE",
		Short: "Apply the HTCJobs and HTCWorkflows of a file, and wait for their end",
		Long: `Apply the HTCJobs and HTCWorkflows of a YAML or JSON file, - for the standard input, as kubectl apply --server-side would. An
object with generateName is created each time. One that already agrees with the file is called unchanged: nothing
is run again because of it.

With --input, which can be repeated, the jobs of HTCJobs find a file of yours in the script's directory, under its own
name or as NAME=FILE. The files go into an immutable ConfigMap that belongs to the HTCJob and is deleted with it. It has
1 MiB for all of them: the largest ones beyond are uploaded, as with htcd upload, and are not sent again while they are there. A
directory is packed and uploaded, and unpacked before the script starts; with a slash behind its name, what is in it is in the script's
directory. A file with another content changes the HTCJob's spec, so that it runs again.

A submit description file of HTCondor, FILE.sub, and a DAG file, FILE.dag, are converted before, as htcd convert does, with the same flags; their files
belong to the HTCJob or HTCWorkflow, too. If something of it would be lost, nothing is submitted. A file that is
called otherwise is known by its lines.

With --dry-run the apiserver checks everything and keeps nothing. With --name-only the standard output is the names, one a line, for
scripts.

It waits up to 2 s for HTCondor, or htcd's administrator, to refuse them, and says why. Afterwards kubectl describe shows it.

With --watch it waits until all have ended; one that had ended and is unchanged keeps its result. On a terminal a line shows how many
jobs are idle, running, done, failed and held; elsewhere only hold reasons and the result are shown. The jobs of an HTCWorkflow are its
nodes: the line also names the steps at work with how many of their nodes are done, and each step that has ended is shown everywhere.
An interrupt leaves the jobs as they are. Exit codes:

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
		files, _ := definitions(args)
		switch {
		case file != "":
			return arguments(0, "no file beside -f")(cmd, files)
		case len(args) > 1 && len(inputs) > 0:
			return arguments(1, "one file with HTCJobs, and --input before each of the others")(cmd, args)
		}
		return arguments(1, "a file")(cmd, files)
	}
	at.Flags(c.Flags())
	setting.Text(c.Flags(), &file, "filename,f", "", setting.Path, "the file, as in kubectl")
	setting.Repeated(
		c.Flags(),
		&inputs,
		"input",
		setting.Path,
		"give the jobs of HTCJobs this `FILE` or directory, or NAME=FILE; DIRECTORY/ means what is in it; can be repeated",
	)
	converted.flags(c.Flags())
	setting.Bool(c.Flags(), &watch, "watch,w", false, "wait until the jobs have ended, and end as they did")
	setting.Bool(c.Flags(), &dryRun, "dry-run", false, "have the apiserver check everything, and submit nothing")
	setting.Bool(c.Flags(), &nameOnly, "name-only", false, "print only the names")
	c.MarkFlagsMutuallyExclusive("dry-run", "watch")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		named, before := definitions(args)
		if converted.before = before; len(named) > 0 {
			file = named[0]
		}
		manifests, bundles, err := submitted(file, cmd, &converted)
		if err != nil {
			return err
		}
		for _, m := range manifests {
			if m.kind() == workflowKind && len(inputs) > 0 {
				return setting.Usage{
					Err: fmt.Errorf(
						"--input is for HTCJobs, and %s has the HTCWorkflow %s: put the files into a ConfigMap, and name it in the inputs of its steps",
						file,
						m.Metadata.Name+m.Metadata.GenerateName,
					),
				}
			}
		}
		files, large, err := readInputs(inputs)
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
		var all []*object
		for i, m := range manifests {
			var bundled []corev1.ConfigMap
			if bundles != nil {
				bundled = bundles[i]
			}
			before := where.before(cmd.Context(), m)
			o, err := where.applyWith(
				cmd.Context(),
				m,
				brought{files, large, bundled, converted.uploadsOf(m)},
				before,
				cmd.ErrOrStderr(),
			)
			if err != nil {
				if cmd.Context().Err() != nil {
					return Exit{exitInterrupted}
				}
				return err
			}
			done := "submitted"
			if same(before, o) {
				done = "unchanged"
			}
			line := o.fullName(o.Name) + " " + done
			switch {
			case nameOnly:
				line = o.Name
			case dryRun:
				line += " (dry run)"
			}
			fmt.Fprintln(cmd.OutOrStdout(), line)
			if watch && done == "unchanged" && over(o, o) {
				fmt.Fprintf(
					cmd.ErrOrStderr(),
					"%s has ended already; to run it again: kubectl annotate %s -n %s %s --overwrite %s=\"$(date)\"\n",
					o.Name,
					strings.ToLower(o.name),
					where.namespace,
					o.Name,
					v1alpha1.RerunAnnotation,
				)
			}
			all = append(all, o)
		}
		switch {
		case dryRun:
			return nil
		case !watch:
			return where.refused(cmd.Context(), all, cmd.ErrOrStderr())
		}
		return where.wait(cmd.Context(), all, displayOn(cmd.ErrOrStderr()))
	}
	return c
}

// submitted reads what is to be submitted: HTCJobs and HTCWorkflows, and the ConfigMaps of each if they are made of a
// file of HTCondor's.
func submitted(file string, cmd *cobra.Command, by *conversion) ([]manifest, [][]corev1.ConfigMap, error) {
	text, err := read(file, cmd.InOrStdin())
	if err != nil {
		return nil, nil, err
	}
	if kindOfFile(file, text) != aManifest {
		return by.manifests(file, text, cmd.ErrOrStderr())
	}
	if len(by.before)+len(by.after) > 0 {
		return nil, nil, setting.Usage{Err: fmt.Errorf("NAME=VALUE and --append are for submit files, and %s is none", file)}
	}
	manifests, err := split(text)
	if err != nil {
		return nil, nil, setting.Usage{Err: fmt.Errorf("%s: %w", file, err)}
	}
	return manifests, nil, nil
}

// maxManifests is far more than a file with HTCJobs or HTCWorkflows needs: Kubernetes accepts 3 MiB for each.
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
		return nil, fmt.Errorf(
			"%s has more than %d MiB, which no file of HTCJobs and HTCWorkflows needs: is it an input? spec.inputs names such, as a url or an artifact, and --input gives small files to the jobs",
			file,
			maxManifests>>20,
		)
	}
	return text, err
}

// manifest is one object as it stands in a file.
type manifest struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata"`
	text            []byte
}

// split separates the HTCJobs and HTCWorkflows of a file. Anything else in it is a mistake: its author would miss it.
func split(text []byte) ([]manifest, error) {
	all, err := objects(text)
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		if m.kind() == nil {
			return nil, fmt.Errorf(
				"%s %s: only HTCJobs and HTCWorkflows of %s can be submitted",
				m.APIVersion,
				m.Kind,
				v1alpha1.GroupVersion,
			)
		}
		if m.Metadata.Name == "" && m.Metadata.GenerateName == "" {
			return nil, fmt.Errorf("an %s without metadata.name or metadata.generateName", m.Kind)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("there is no HTCJob and no HTCWorkflow in it")
	}
	return all, nil
}

// kind is that of the object; nil if it is none of the two.
func (m manifest) kind() *kind {
	for _, k := range kinds {
		if m.APIVersion == v1alpha1.GroupVersion.String() && m.Kind == k.name {
			return k
		}
	}
	return nil
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
func (c *cluster) before(ctx context.Context, m manifest) *object {
	if m.Metadata.Name == "" {
		return nil
	}
	o, err := c.of(m.kind()).get(ctx, m.Metadata.Name)
	if err != nil {
		return nil // apply reports the error
	}
	return o
}

// same reports whether applying changed nothing that a user writes. The resourceVersion does not show it: the status is
// written meanwhile.
func same(before, after *object) bool {
	return before != nil && before.UID == after.UID && before.Generation == after.Generation &&
		maps.Equal(before.Labels, after.Labels) && maps.Equal(before.Annotations, after.Annotations)
}

// apply makes the object what the manifest says.
func (c *cluster) apply(ctx context.Context, m manifest) (*object, error) {
	if m.Metadata.Namespace != "" && m.Metadata.Namespace != c.namespace {
		return nil, fmt.Errorf(
			"%s %s is of namespace %s: say -n %s",
			m.Kind,
			m.Metadata.Name,
			m.Metadata.Namespace,
			m.Metadata.Namespace,
		)
	}
	if m.Metadata.Name == "" {
		return c.of(m.kind()).create(ctx, m.text, metav1.CreateOptions{FieldManager: manager, DryRun: c.dryRun})
	}
	force := true
	return c.of(m.kind()).patch(
		ctx,
		m.Metadata.Name,
		types.ApplyPatchType,
		m.text,
		metav1.PatchOptions{
			FieldManager:    manager,
			Force:           &force,
			FieldValidation: metav1.FieldValidationStrict,
			DryRun:          c.dryRun,
		},
	)
}

// wait shows the progress of objects until all have ended, and ends with their exit code.
func (c *cluster) wait(ctx context.Context, all []*object, d *display) error {
	d.all = slices.Clone(all)
	group, watching := errgroup.WithContext(ctx)
	for i, o := range all {
		group.Go(func() error {
			return c.follow(watching, o, func(now *object) { d.show(i, now) }, d.say)
		})
	}
	err := group.Wait()
	d.finish()
	switch {
	case ctx.Err() != nil:
		d.say("the jobs continue: htcd list -n %s shows them, htcd delete removes them", c.namespace)
		return Exit{exitInterrupted}
	case err != nil:
		return err
	}
	if code := exitCode(d.all); code != 0 {
		return Exit{code}
	}
	return nil
}
