package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/kube/site"
	"htc.cern.ch/htcd/internal/schedd/submit"
	"htc.cern.ch/htcd/internal/target/pool"
)

// Rendering is what htcd render is asked for.
type Rendering struct {
	File, PoolFile, Pool string
	SubmitOnly           bool
	Site                 site.Site
	Cluster              func() (Cluster, error) // not asked for with PoolFile
}

// Cluster is where HTCPools, labels of namespaces and tables are read.
type Cluster struct {
	Core kubernetes.Interface
	HTC  *v1alpha1.Client
}

// Print renders an HTCJob.
func (r Rendering) Print(ctx context.Context, stdin io.Reader, out io.Writer) error {
	job, err := r.job(stdin)
	if err != nil {
		return err
	}
	p, tables, err := r.by(ctx, job)
	if err != nil {
		return err
	}
	sandbox, effective, err := r.Site.Preview(ctx, job, p, tables)
	if err != nil {
		return err
	}
	return r.write(out, sandbox, effective)
}

// job reads the HTCJob. What the apiserver would give it only stands for something.
func (r Rendering) job(stdin io.Reader) (*v1alpha1.HTCJob, error) {
	text, err := readFile(r.File, stdin)
	if err != nil {
		return nil, err
	}
	job := &v1alpha1.HTCJob{}
	if err := yaml.UnmarshalStrict(text, job); err != nil {
		return nil, fmt.Errorf("%s: %w", r.File, err)
	}
	if job.Kind != v1alpha1.Kind {
		return nil, fmt.Errorf("%s: expected one %s, found kind %q", r.File, v1alpha1.Kind, job.Kind)
	}
	job.Name, job.Namespace = cmp.Or(
		job.Name,
		strings.TrimSuffix(job.GenerateName, "-"),
		"name",
	), cmp.Or(
		job.Namespace,
		"default",
	)
	job.UID = types.UID(cmp.Or(string(job.UID), "00000000-0000-0000-0000-000000000000"))
	if r.Pool != "" {
		wish := v1alpha1.Pool{}
		if job.Spec.Pool != nil {
			wish = *job.Spec.Pool
		}
		wish.Name = r.Pool
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
func (r Rendering) by(ctx context.Context, job *v1alpha1.HTCJob) (pool.Pool, inputs.ConfigMaps, error) {
	if r.PoolFile != "" {
		if job.Spec.ItemsFrom != nil {
			return pool.Pool{}, nil, errors.New("spec.itemsFrom is read from the apiserver: leave --pool-file out")
		}
		text, err := os.ReadFile(r.PoolFile)
		if err != nil {
			return pool.Pool{}, nil, err
		}
		given := &v1alpha1.HTCPool{}
		if err := yaml.UnmarshalStrict(text, given); err != nil {
			return pool.Pool{}, nil, fmt.Errorf("%s: %w", r.PoolFile, err)
		}
		if given.Kind != "HTCPool" || given.Name == "" {
			return pool.Pool{}, nil, fmt.Errorf("%s: expected one HTCPool with a name", r.PoolFile)
		}
		given.Spec.NamespaceSelector, given.Spec.Default = nil, true
		if job.Spec.Pool != nil {
			job.Spec.Pool.Name = ""
		}
		p, err := pool.Choose(job, fixed{pools: []*v1alpha1.HTCPool{given}})
		return p, nil, err
	}
	cluster, err := r.Cluster()
	if err != nil {
		return pool.Pool{}, nil, fmt.Errorf("%w; with --pool-file no apiserver is needed", err)
	}
	known, err := cluster.pools(ctx, job.Namespace)
	if err != nil {
		return pool.Pool{}, nil, fmt.Errorf("read the HTCPools: %w; with --pool-file no apiserver is needed", err)
	}
	p, err := pool.Choose(job, known)
	return p, inputs.APIConfigMaps{Client: cluster.Core.CoreV1()}, err
}

// fixed are pools that were read once, and the labels of one namespace. It implements pool.Known.
type fixed struct {
	pools  []*v1alpha1.HTCPool
	labels labels.Set // nil: not known
}

// apiTime is how long the apiserver may take for a small answer.
const apiTime = 15 * time.Second

func (c Cluster) pools(ctx context.Context, namespace string) (fixed, error) {
	ctx, cancel := context.WithTimeout(ctx, apiTime)
	defer cancel()
	var known fixed
	list, err := c.HTC.Pools().List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) { // no such resource
		return known, nil
	}
	if err != nil {
		return known, err
	}
	selects := false
	for i := range list.Items {
		p := &list.Items[i]
		known.pools, selects = append(known.pools, p), selects || p.Spec.NamespaceSelector != nil
	}
	if !selects {
		return known, nil
	}
	found, err := c.Core.CoreV1().Namespaces().List(
		ctx,
		metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, namespace).String()},
	)
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
func (r Rendering) write(out io.Writer, sandbox submit.Sandbox, effective *v1alpha1.Effective) error {
	var head, rest strings.Builder
	for _, f := range sandbox.Files {
		content := f.Text()
		if f.From != "" {
			content = "(a copy of " + f.From + ")\n"
		}
		to := &rest
		if f.Name == submit.SubmitFile {
			to = &head
		}
		if r.SubmitOnly && to == &rest {
			continue
		}
		if !r.SubmitOnly {
			fmt.Fprintf(to, "### %s (%04o, %d bytes)\n", f.Name, f.Mode.Perm(), len(content))
		}
		to.WriteString(content)
		if !strings.HasSuffix(content, "\n") {
			to.WriteString("\n")
		}
	}
	if effective != nil && !r.SubmitOnly {
		text, err := yaml.Marshal(map[string]any{"effective": effective})
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "### status\n%s", text)
	}
	_, err := io.WriteString(out, head.String()+rest.String())
	return err
}
