package kube

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
)

// home is where a run is in HTCondor, and whose it is. It stands in the ledger with the intent: every later question
// about the run goes there, as that account, whatever the flags or the site's command say by then.
type home struct {
	place     schedd.Place
	namespace string
	secret    string // the Secret that its HTCJob names; empty: the usual account of its namespace
}

func homeOf(run ledger.Run) home {
	return home{schedd.Place{Collector: run.Collector, Schedd: run.Schedd}, run.Namespace, run.Secret}
}

// withHome gives a run its home.
func withHome(run ledger.Run, h home) ledger.Run {
	run.Collector, run.Schedd, run.Secret = h.place.Collector, h.place.Schedd, h.secret
	return run
}

// home is the one that the spec asks for; without a schedd where that is the usual one. Its errors are of kind schedd.Refused.
func (s Site) home(job *v1alpha1.HTCJob) (home, error) {
	h := home{namespace: job.Namespace}
	pool := job.Spec.Pool
	if pool == nil {
		return h, nil
	}
	h.place, h.secret = schedd.Place{Collector: pool.Collector, Schedd: pool.Schedd}, pool.SecretName
	if h.place.Collector == s.Collector {
		h.place.Collector = ""
	}
	if h.place == (schedd.Place{Schedd: s.Schedd}) {
		h.place.Schedd = ""
	}
	switch {
	case h.place.Collector != "" && h.place.Schedd == "":
		return h, refuse("spec.pool.collector names another pool: write in spec.pool.schedd which of its schedds is meant")
	case h.place.Schedd != "":
		if err := schedd.AllowPlace(h.place, s.AllowPools); err != nil {
			return h, err
		}
	}
	switch {
	case h.secret == "" || slices.Contains(s.PoolSecrets, h.secret):
		return h, nil
	case len(s.PoolSecrets) == 0:
		return h, refuse("spec.pool.secretName: this htcd reads no Secrets of namespaces (--namespace-secrets is not set): leave it out")
	}
	return h, refuse("spec.pool.secretName: htcd may read Secrets of the names %s only (--pool-secrets)", strings.Join(s.PoolSecrets, ", "))
}

func refuse(format string, args ...any) error {
	return &schedd.Error{Kind: schedd.Refused, Stderr: fmt.Sprintf(format, args...)}
}

// identity is as whom, and where, a command about a run of that home goes.
func (c *Controller) identity(ctx context.Context, h home) (schedd.Identity, error) {
	id, err := c.Credentials.Identity(ctx, h.namespace, h.secret)
	id.Place = h.place
	return id, err
}

// choose says where an attempt that begins now goes.
func (c *Controller) choose(ctx context.Context, job *v1alpha1.HTCJob) (home, schedd.Identity, error) {
	h, err := c.Site.home(job)
	if err != nil {
		return h, schedd.Identity{}, err
	}
	id, err := c.identity(ctx, h)
	if err != nil || h.place.Schedd != "" {
		return h, id, err
	}
	name, err := c.Schedd.ScheddName(ctx, id)
	if err != nil {
		return h, id, err
	}
	h.place.Schedd, id.Place.Schedd = name, name
	c.usual.set(job.Namespace, h.place)
	return h, id, nil
}

// usual remembers which schedd was chosen last for those of a namespace who name none. An account may have a schedd of
// its own, and so may a namespace.
type usual struct{ m sync.Map }

func (u *usual) set(namespace string, p schedd.Place) { u.m.Store(namespace, p) }

func (u *usual) get(namespace string) schedd.Place {
	p, _ := u.m.Load(namespace)
	place, _ := p.(schedd.Place)
	return place
}

// nextPlace is where the next attempt of an HTCJob goes, as far as that is known.
func (c *Controller) nextPlace(job *v1alpha1.HTCJob) schedd.Place {
	h, err := c.Site.home(job)
	if err != nil || h.place.Schedd == "" {
		return c.usual.get(job.Namespace)
	}
	return h.place
}

// placeOf is the schedd that an HTCJob depends on at present.
func (c *Controller) placeOf(s situation, v view) schedd.Place {
	switch {
	case s.run != nil && s.run.Schedd != "" && v.decision.action != actSubmit:
		return homeOf(*s.run).place
	case v.stuck && v.trouble.condition == v1alpha1.ConditionBackendReachable:
		return v.trouble.place
	}
	return c.nextPlace(s.job)
}

// circle is the runs that are asked about together: at one place, with one account.
type circle struct {
	home
	runs []ledger.Run
}

// circle is the home by which such runs are asked about together.
func (h home) circle() home {
	if h.secret == "" {
		h.namespace = ""
	}
	return h
}

// circles sorts runs. Those with the usual account of their namespace are asked about together, as whoever has a ticket:
// the schedd shows everybody's jobs to everybody.
func circles(runs []ledger.Run) []circle {
	sorted := map[home]*circle{}
	for _, run := range runs {
		h := homeOf(run).circle()
		if sorted[h] == nil {
			sorted[h] = &circle{home: h}
		}
		sorted[h].runs = append(sorted[h].runs, run)
	}
	all := make([]circle, 0, len(sorted))
	for _, k := range sorted {
		all = append(all, *k)
	}
	slices.SortFunc(all, func(a, b circle) int {
		return cmp.Or(cmp.Compare(a.place.Collector, b.place.Collector), cmp.Compare(a.place.Schedd, b.place.Schedd),
			cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.secret, b.secret))
	})
	return all
}

// questioner is as whom, and where, a circle is asked about.
func (c *Controller) questioner(ctx context.Context, h home) (schedd.Identity, error) {
	if h.secret != "" {
		return c.identity(ctx, h)
	}
	id, err := c.Credentials.Any(ctx)
	id.Place = h.place
	return id, err
}
