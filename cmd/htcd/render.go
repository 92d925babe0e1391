package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/pool"
)

// rendering is what htcd render is asked for.
type rendering struct {
	file, poolFile, pool string
	submit               bool
}

// renderCommand shows what htcd would send.
func renderCommand(environ []string) *cobra.Command {
	var o Options
	var r rendering
	c := &cobra.Command{
		Use:   "render -f FILE",
		Short: "Print what htcd would send for an HTCJob, without sending anything",
		Long: `Print the submit description and the files that go with it, after the defaults and adjustments of the HTCPool. Nothing is
sent, no Secret is read, and the contents of credentials are not shown.

It takes the flags and HTCD_ variables of htcd run, except that --pool names the HTCPool here; HTCD_POOL is the collector here, too. In htcd's pod:
kubectl -n htcd exec -i deploy/htcd -- htcd render -f - < job.yaml. With --pool-file no apiserver is needed.`,
		Args: setting.NoArguments,
	}
	setting.Text(c.Flags(), &r.file, "file,f", "", setting.Path, "`file` with the HTCJob; -: standard input (required)")
	setting.Text(c.Flags(), &r.pool, "pool", "", setting.Object, "`name` of the HTCPool; empty: the one that the HTCJob names, or the default one")
	setting.Text(c.Flags(), &r.poolFile, "pool-file", "", setting.Path, "`file` with the HTCPool, which need not exist in the cluster; its namespaceSelector is not looked at")
	setting.Bool(c.Flags(), &r.submit, "submit-only", false, "print the submit description alone")
	settings := pflag.NewFlagSet("settings", pflag.ContinueOnError)
	o.flags(settings)
	c.Flags().AddFlagSet(settings) // without those that are there already
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		wrong := func(err error) error { return setting.Usage{Err: fmt.Errorf("render: %w", err)} }
		if err := o.complete(settings, environ); err != nil {
			return wrong(err)
		}
		if r.file == "" {
			return wrong(errors.New("-f is required: the file with the HTCJob"))
		}
		if err := o.checkParts(); err != nil {
			return wrong(err)
		}
		if err := r.print(cmd.Context(), o, cmd.InOrStdin(), cmd.OutOrStdout()); err != nil {
			return fmt.Errorf("render: %w", err)
		}
		return nil
	}
	return c
}

// print renders an HTCJob.
func (r rendering) print(ctx context.Context, o Options, stdin io.Reader, out io.Writer) error {
	job, err := r.job(stdin)
	if err != nil {
		return err
	}
	site, err := o.site()
	if err != nil {
		return err
	}
	p, tables, err := r.by(ctx, o, job)
	if err != nil {
		return err
	}
	sandbox, effective, err := site.Preview(ctx, job, p, tables)
	if err != nil {
		return err
	}
	return r.write(out, sandbox, effective)
}

// job reads the HTCJob. What the apiserver would give it only stands for something.
func (r rendering) job(stdin io.Reader) (*v1alpha1.HTCJob, error) {
	text, err := readFile(r.file, stdin)
	if err != nil {
		return nil, err
	}
	job := &v1alpha1.HTCJob{}
	if err := yaml.UnmarshalStrict(text, job); err != nil {
		return nil, fmt.Errorf("%s: %w", r.file, err)
	}
	if job.Kind != v1alpha1.Kind {
		return nil, fmt.Errorf("%s: expected one %s, found kind %q", r.file, v1alpha1.Kind, job.Kind)
	}
	job.Name, job.Namespace = cmp.Or(job.Name, strings.TrimSuffix(job.GenerateName, "-"), "name"), cmp.Or(job.Namespace, "default")
	job.UID = types.UID(cmp.Or(string(job.UID), "00000000-0000-0000-0000-000000000000"))
	if r.pool != "" {
		wish := v1alpha1.Pool{}
		if job.Spec.Pool != nil {
			wish = *job.Spec.Pool
		}
		wish.Name = r.pool
		job.Spec.Pool = &wish
	}
	return job, nil
}

func readFile(name string, stdin io.Reader) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(name) // #nosec G304 -- the user's own choice
}

// by returns the pool that an HTCJob would be sent by, and where tables are read from.
func (r rendering) by(ctx context.Context, o Options, job *v1alpha1.HTCJob) (pool.Pool, inputs.ConfigMaps, error) {
	if r.poolFile != "" {
		if job.Spec.ItemsFrom != nil {
			return pool.Pool{}, nil, errors.New("spec.itemsFrom is read from the apiserver: leave --pool-file out")
		}
		text, err := os.ReadFile(r.poolFile)
		if err != nil {
			return pool.Pool{}, nil, err
		}
		given := &v1alpha1.HTCPool{}
		if err := yaml.UnmarshalStrict(text, given); err != nil {
			return pool.Pool{}, nil, fmt.Errorf("%s: %w", r.poolFile, err)
		}
		if given.Kind != "HTCPool" || given.Name == "" {
			return pool.Pool{}, nil, fmt.Errorf("%s: expected one HTCPool with a name", r.poolFile)
		}
		given.Spec.NamespaceSelector, given.Spec.Default = nil, true
		if job.Spec.Pool != nil {
			job.Spec.Pool.Name = ""
		}
		p, err := pool.Choose(job, fixed{pools: []*v1alpha1.HTCPool{given}})
		return p, nil, err
	}
	d, err := newDaemon(o, zerolog.Nop())
	if err != nil {
		return pool.Pool{}, nil, fmt.Errorf("%w; with --pool-file no apiserver is needed", err)
	}
	known, err := d.fixedPools(ctx, job.Namespace)
	if err != nil {
		return pool.Pool{}, nil, fmt.Errorf("read the HTCPools: %w; with --pool-file no apiserver is needed", err)
	}
	p, err := pool.Choose(job, known)
	return p, inputs.APIConfigMaps{Client: d.core.CoreV1()}, err
}

// fixed are pools that were read once, and the labels of one namespace. It implements pool.Known.
type fixed struct {
	pools  []*v1alpha1.HTCPool
	labels labels.Set // nil: not known
}

func (d *daemon) fixedPools(ctx context.Context, namespace string) (fixed, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var known fixed
	list, err := listPools(d.jobs).ListWithContext(ctx, metav1.ListOptions{})
	if err != nil {
		return known, err
	}
	selects := false
	for i := range list.(*v1alpha1.HTCPoolList).Items {
		p := &list.(*v1alpha1.HTCPoolList).Items[i]
		known.pools, selects = append(known.pools, p), selects || p.Spec.NamespaceSelector != nil
	}
	if !selects {
		return known, nil
	}
	found, err := d.core.CoreV1().Namespaces().List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, namespace).String()})
	if err == nil && len(found.Items) > 0 {
		known.labels = labels.Merge(labels.Set{}, found.Items[0].Labels)
	}
	return known, err
}

// Get implements pool.Known.
func (f fixed) Get(name string) *v1alpha1.HTCPool {
	for _, p := range f.pools {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// Default implements pool.Known.
func (f fixed) Default() *v1alpha1.HTCPool { return pool.OldestDefault(f.pools) }

// Labels implements pool.Known.
func (f fixed) Labels(string) (labels.Set, bool) { return f.labels, f.labels != nil }

// write prints the sandbox, the submit description first.
func (r rendering) write(out io.Writer, sandbox schedd.Sandbox, effective *v1alpha1.Effective) error {
	var head, rest strings.Builder
	for _, f := range sandbox.Files {
		content := f.Content
		if f.From != "" {
			content = "(a copy of " + f.From + ")\n"
		}
		to := &rest
		if f.Name == schedd.SubmitFile {
			to = &head
		}
		if r.submit && to == &rest {
			continue
		}
		if !r.submit {
			fmt.Fprintf(to, "### %s (%04o, %d bytes)\n", f.Name, f.Mode.Perm(), len(content))
		}
		to.WriteString(content)
		if !strings.HasSuffix(content, "\n") {
			to.WriteString("\n")
		}
	}
	if effective != nil && !r.submit {
		text, err := yaml.Marshal(map[string]any{"effective": effective})
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "### status\n%s", text)
	}
	_, err := io.WriteString(out, head.String()+rest.String())
	return err
}
