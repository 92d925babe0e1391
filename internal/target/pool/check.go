package pool

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/submit"
	"htc.cern.ch/htcd/internal/target/joboptions"
)

// Rules are htcd's own settings that also hold for pools.
type Rules struct {
	AllowOptions  []string // as schedd.Description has it
	Attributes    []string // the same
	AllowImages   []string // the same
	ImageRegistry string   // the same
	PoolSecrets   []string // names of the Secrets that hold accounts of namespaces
}

// Check returns what is wrong with a pool, an *Unusable with ReasonInvalid: then nothing is sent by it.
func Check(name string, spec v1alpha1.HTCPoolSpec, rules Rules) error {
	if _, err := metav1.LabelSelectorAsSelector(spec.NamespaceSelector); err != nil {
		return invalid(name, fmt.Errorf("namespaceSelector: %w", err))
	}
	if err := submit.CheckImagePatterns(spec.Images); err != nil {
		return invalid(name, fmt.Errorf("images: %w", err))
	}
	if err := submit.CheckAttributes(spec.Attributes); err != nil {
		return invalid(name, fmt.Errorf("attributes: %w", err))
	}
	if a := spec.Account; a != nil && a.SecretName != "" && !slices.Contains(rules.PoolSecrets, a.SecretName) {
		if len(rules.PoolSecrets) == 0 {
			return invalid(
				name,
				fmt.Errorf("account.secretName: htcd reads no Secrets of namespaces (--namespace-secrets is not set)"),
			)
		}
		return invalid(
			name,
			fmt.Errorf(
				"account.secretName: htcd may read Secrets of the names %s only (--pool-secrets)",
				strings.Join(rules.PoolSecrets, ", "),
			),
		)
	}
	if err := checkKeep(spec.Keep); err != nil {
		return invalid(name, err)
	}
	if d := spec.Defaults; d != nil && d.Image != "" {
		if err := submit.CheckDefaultImage(d.Image, rules.ImageRegistry, rules.AllowImages, spec.Images); err != nil {
			return invalid(name, fmt.Errorf("defaults.image: %w", err))
		}
	}
	defaults, err := Pool{Name: name, Spec: spec}.Defaults()
	if err == nil {
		err = submit.CheckDefaults(
			name,
			defaults,
			rules.AllowOptions,
			slices.Concat(rules.Attributes, spec.Attributes)...)
	}
	if err != nil {
		return invalid(name, fmt.Errorf("defaults: %s", strings.ReplaceAll(err.Error(), "spec.", "defaults.")))
	}
	return nil
}

func invalid(name string, why error) error {
	return &Unusable{
		ReasonInvalid,
		fmt.Sprintf("HTCPool %s cannot be used until its administrator mends it: %v", name, why),
	}
}

// Defaults returns what a pool adds to an HTCJob in HTCondor's terms.
func (p Pool) Defaults() (submit.Defaults, error) {
	var d submit.Defaults
	var err error
	if s := p.Spec.Defaults; s != nil {
		d.JobOptions, err = joboptions.Of(v1alpha1.HTCJobSpec{
			Resources: s.Resources, AccountingGroup: s.AccountingGroup, Retries: s.Retries,
			MemoryRetry: s.MemoryRetry, Deadlines: s.Deadlines,
		})
		if err != nil {
			return d, err
		}
		d.Options = s.HTCOpts
		d.Environment = make(map[string]string, len(s.Environment))
		for name, value := range s.Environment {
			d.Environment[name] = string(value)
		}
	}
	if m := p.Spec.Max; m != nil {
		d.Most, err = joboptions.Of(
			v1alpha1.HTCJobSpec{
				Resources: &m.Resources,
				Deadlines: v1alpha1.Deadlines{RunDeadlineSeconds: m.RunDeadlineSeconds},
			},
		)
		if err != nil {
			return d, condor.Refusal("%s", strings.ReplaceAll(err.Error(), "spec.resources.", "max."))
		}
	}
	if a := p.Spec.Adjust; a != nil {
		d.Adjust = submit.Adjust{
			CPUs:   percent(a.CPUsPercent),
			Memory: percent(a.MemoryPercent),
			Disk:   percent(a.DiskPercent),
		}
		if a.MemoryExtra != nil && a.MemoryExtra.Sign() > 0 {
			d.Adjust.MemoryExtra = (a.MemoryExtra.Value() + 1<<20 - 1) >> 20
		}
	}
	return d, nil
}

func percent(p *int32) int64 {
	if p == nil {
		return 0
	}
	return int64(*p)
}
