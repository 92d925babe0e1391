package plugin

import (
	"archive/tar"
	"cmp"
	"context"
	"fmt"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/items"
	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

// places says where the files of each job land; nil: in a directory called by its number, or as its node is.
type places struct {
	spec    v1alpha1.Landing
	items   []string
	cluster string                      // the number of that of the newest attempt
	steps   map[string]v1alpha1.Landing // those that say where the files of their nodes land, by their names
}

// unit is a job or a node whose files land.
type unit struct {
	v1alpha1.Landing
	field   string // that has said so
	called  string // what it is called in messages
	home    string // its directory if nothing is said
	number  int
	item    string // its variables
	cluster string
}

// job is that of a number.
func (p *places) job(proc int) unit {
	number := strconv.Itoa(proc)
	u := unit{
		Landing: p.spec,
		field:   "spec.landing",
		called:  "job " + number,
		home:    number,
		number:  proc,
		cluster: p.cluster,
	}
	if proc < len(p.items) {
		u.item = p.items[proc]
	}
	return u
}

// node is the one of whose files this is the first header.
func (p *places) node(name string, first *tar.Header) unit {
	step, _, _ := strings.Cut(filepath.ToSlash(name), "/")
	number, _ := strconv.Atoi(first.PAXRecords[aggregate.RecordNumber]) // else it is 0
	return unit{
		Landing: p.steps[step],
		field:   "job.landing of the step " + step,
		called:  "node " + filepath.ToSlash(name),
		home:    name,
		number:  number,
		item:    first.PAXRecords[aggregate.RecordVariables],
		cluster: first.PAXRecords[aggregate.RecordCluster],
	}
}

// placesOfNodes reads job.landing of the steps; nil: there is none.
func placesOfNodes(w *v1alpha1.HTCWorkflow) *places {
	p := &places{steps: map[string]v1alpha1.Landing{}}
	add := func(s v1alpha1.StepWork) {
		if s.Job.Landing != nil {
			p.steps[string(s.Name)] = *s.Job.Landing
		}
	}
	for _, s := range w.Spec.Steps {
		add(s.StepWork)
	}
	if f := w.Spec.Finally; f != nil {
		add(*f)
	}
	if len(p.steps) == 0 {
		return nil
	}
	return p
}

// placesOf reads spec.landing, and the items that it needs.
func (c *cluster) placesOf(ctx context.Context, job *v1alpha1.HTCJob) (*places, error) {
	if job.Spec.Landing == nil {
		return nil, nil
	}
	p := &places{spec: *job.Spec.Landing, cluster: strconv.FormatInt(int64(job.Status.ClusterID), 10)}
	var err error
	anything := func(_, _ string) error { return nil } // htcd has checked them
	switch from := job.Spec.ItemsFrom; {
	case len(job.Spec.Items) > 0:
		p.items, err = items.List(job.Spec.Items, anything)
	case len(job.Spec.Parameters) > 0:
		p.items, err = items.Product(job.Spec.Parameters, anything)
	case from != nil && from.JobRef != nil && p.needItems():
		return nil, fmt.Errorf(
			"spec.landing calls files by items, and these are in the output of the HTCJob %s, which this command does not read: use {{proc}} there",
			from.JobRef.Name,
		)
	case from != nil && p.needItems():
		ref := from.ConfigMapKeyRef
		table, failed := c.configMaps.Get(ctx, ref.Name, metav1.GetOptions{})
		if failed != nil {
			return nil, fmt.Errorf("the table of the items, by which spec.landing calls files: %w", failed)
		}
		text := table.BinaryData[ref.Key]
		if text == nil {
			text = []byte(table.Data[ref.Key])
		}
		p.items, err = items.Table(text, items.Most, anything)
	}
	if err != nil {
		return nil, fmt.Errorf("the items, by which spec.landing calls files: %w", err)
	}
	return p, nil
}

func (p *places) needItems() bool {
	all := []v1alpha1.LandingPlace{p.spec.Directory, p.spec.Stdout, p.spec.Stderr}
	for _, place := range p.spec.Files {
		all = append(all, place)
	}
	for _, place := range all {
		if items.Varies(string(place)) {
			return true
		}
	}
	return false
}

// of returns where a file of a job or node lands, below the directory.
func (u unit) of(file string) (string, error) {
	var missing error
	fill := func(text string) string {
		filled, err := items.Fill(strings.ReplaceAll(text, "{{cluster}}", u.cluster), u.number, u.item)
		missing = cmp.Or(missing, err)
		return filled
	}
	place, rest := u.place(filepath.ToSlash(file), fill)
	to := u.home
	if place != "" {
		to = fill(string(place))
	}
	if missing != nil {
		return "", fmt.Errorf("%s: %w", u.field, missing)
	}
	to = filepath.Join(filepath.FromSlash(to), filepath.FromSlash(rest))
	if !filepath.IsLocal(to) || to == "." || strings.HasPrefix(to, ".htcd-") {
		return "", fmt.Errorf(
			"%s: %q of %s would be at %q: expected a place below the directory",
			u.field,
			file,
			u.called,
			to,
		)
	}
	return to, nil
}

// place returns the place of a file, empty for its directory if nothing is said, and what of its path follows there.
func (u unit) place(file string, fill func(string) string) (place v1alpha1.LandingPlace, rest string) {
	for stream, to := range map[string]v1alpha1.LandingPlace{"_condor_stdout": u.Stdout, "_condor_stderr": u.Stderr} {
		if file == stream && to != "" {
			return to, within(to, streams[stream])
		}
	}
	longest := ""
	for name, to := range u.Files {
		name = strings.TrimSuffix(fill(name), "/")
		if below, is := strings.CutPrefix(file, name); is && len(name) > len(longest) {
			switch {
			case below == "":
				longest, place, rest = name, to, within(to, path.Base(file))
			case strings.HasPrefix(below, "/"):
				longest, place, rest = name, to, below
			}
		}
	}
	if longest != "" {
		return place, rest
	}
	return u.Directory, streamName(file)
}

// within is the name of a file in a place that is a directory.
func within(place v1alpha1.LandingPlace, name string) string {
	if strings.HasSuffix(string(place), "/") {
		return name
	}
	return ""
}

// streams are the names of standard output and error on this side.
var streams = map[string]string{"_condor_stdout": "stdout", "_condor_stderr": "stderr"}

// streamName is what a file of a job is called on this side.
func streamName(file string) string { return cmp.Or(streams[file], file) }
