package plugin

import (
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
)

// places says where the files of each job land; nil: in a directory called by its number.
type places struct {
	spec    v1alpha1.Landing
	items   []string
	cluster string // the number of that of the newest attempt
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
		p.items, err = items.Table(text, anything)
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

// of returns where a file of a job lands, below the directory.
func (p *places) of(proc int, file string) (string, error) {
	item := ""
	if proc < len(p.items) {
		item = p.items[proc]
	}
	var missing error
	fill := func(text string) string {
		filled, err := items.Fill(strings.ReplaceAll(text, "{{cluster}}", p.cluster), proc, item)
		missing = cmp.Or(missing, err)
		return filled
	}
	place, rest := p.place(filepath.ToSlash(file), fill)
	to := fill(string(place))
	if missing != nil {
		return "", fmt.Errorf("spec.landing: %w", missing)
	}
	to = filepath.Join(filepath.FromSlash(to), filepath.FromSlash(rest))
	if !filepath.IsLocal(to) || to == "." || strings.HasPrefix(to, ".htcd-") {
		return "", fmt.Errorf(
			"spec.landing: %q of job %d would be at %q: expected a place below the directory",
			file,
			proc,
			to,
		)
	}
	return to, nil
}

// place returns the place of a file, and what of its path follows there.
func (p *places) place(file string, fill func(string) string) (place v1alpha1.LandingPlace, rest string) {
	for stream, to := range map[string]v1alpha1.LandingPlace{"_condor_stdout": p.spec.Stdout, "_condor_stderr": p.spec.Stderr} {
		if file == stream && to != "" {
			return to, within(to, streams[stream])
		}
	}
	longest := ""
	for name, to := range p.spec.Files {
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
	return cmp.Or(p.spec.Directory, "{{proc}}"), streamName(file)
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
