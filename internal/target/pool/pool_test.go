package pool

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/submit"
	"htc.cern.ch/htcd/internal/target/backend"
)

// cluster is a Known with these pools, in which the namespace "labelled" has the label grid=true and "unseen" is not
// known.
type cluster []*v1alpha1.HTCPool

func (c cluster) Get(name string) *v1alpha1.HTCPool {
	for _, p := range c {
		if p.Name == name {
			return p
		}
	}
	return nil
}

func (c cluster) Default() *v1alpha1.HTCPool { return OldestDefault(c) }

func (c cluster) Labels(namespace string) (labels.Set, bool) {
	if namespace == "labelled" {
		return labels.Set{"grid": "true"}, true
	}
	return nil, namespace != "unseen"
}

func made(name string, age time.Duration, spec v1alpha1.HTCPoolSpec) *v1alpha1.HTCPool {
	return &v1alpha1.HTCPool{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0).Add(-age))},
		Spec:       spec,
	}
}

func job(namespace, pool string) *v1alpha1.HTCJob {
	j := &v1alpha1.HTCJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "job"}}
	if pool != "" {
		j.Spec.Pool = &v1alpha1.Pool{Name: pool}
	}
	return j
}

func TestThePoolOfAnHTCJob(t *testing.T) {
	grid := &metav1.LabelSelector{MatchLabels: map[string]string{"grid": "true"}}
	broken := &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "grid", Operator: "Like"}},
	}
	known := cluster{
		made("plain", 0, v1alpha1.HTCPoolSpec{}), made("grid", 0, v1alpha1.HTCPoolSpec{NamespaceSelector: grid}),
		made("broken", 0, v1alpha1.HTCPoolSpec{NamespaceSelector: broken}),
		made(
			"young",
			time.Hour,
			v1alpha1.HTCPoolSpec{Default: true},
		), made("old", 2*time.Hour, v1alpha1.HTCPoolSpec{Default: true, NamespaceSelector: grid}),
	}
	for name, c := range map[string]struct {
		namespace, asks, gets, reason string
	}{
		"a name":                               {"any", "plain", "plain", ""},
		"a name that there is not":             {"any", "none", "", ReasonMissing},
		"a name for others":                    {"any", "grid", "", ReasonNotAllowed},
		"a name for those with a label":        {"labelled", "grid", "grid", ""},
		"a namespace that is not known":        {"unseen", "grid", "", ReasonNotAllowed},
		"a selector that is none":              {"any", "broken", "", ReasonInvalid},
		"the oldest default":                   {"labelled", "", "old", ""},
		"the oldest default, which others use": {"any", "", "", ""},
	} {
		p, err := Choose(job(c.namespace, c.asks), known)
		if c.reason != "" {
			var why *Unusable
			require.ErrorAs(t, err, &why, name)
			require.Equal(t, c.reason, why.Reason, name)
			require.True(t, Waits(why.Reason))
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, c.gets, p.Name, name)
	}
	p, err := Choose(job("any", ""), nil)
	require.NoError(t, err)
	require.True(t, p.None())
}

func TestOneOfAThousandPoolsIsFound(t *testing.T) {
	var known cluster
	for i := range 1000 {
		known = append(known, made(fmt.Sprint("pool-", i), time.Duration(i), v1alpha1.HTCPoolSpec{Default: true}))
	}
	p, err := Choose(job("any", ""), known)
	require.NoError(t, err)
	require.Equal(t, "pool-999", p.Name)
}

func TestASnapshotHoldsWhatAnAttemptIsMadeWith(t *testing.T) {
	spec := v1alpha1.HTCPoolSpec{
		Default: true,
		Schedd:  "one@lab",
		State:   v1alpha1.PoolDraining,
		Limits:  &v1alpha1.PoolLimits{MaxOpen: new(int32(3))},
		Defaults: &v1alpha1.PoolDefaults{
			HTCOpts: strings.Repeat("# long\n", 9000),
		},
		Keep: &v1alpha1.PoolKeep{Most: new(v1alpha1.PoolDuration("1h"))},
	}
	before := of(made("grid", 0, spec))
	hash, text := before.Snapshot()
	again, err := read("grid", text)
	require.NoError(t, err)
	require.Equal(t, before, again)
	spec.Limits, spec.State, spec.Default = nil, v1alpha1.PoolOnline, false
	same, _ := of(made("grid", 0, spec)).Snapshot()
	require.Equal(t, hash, same, "limits, state and whose default it is are not written down")
	spec.Schedd = "two@lab"
	other, _ := of(made("grid", 0, spec)).Snapshot()
	require.NotEqual(t, hash, other)
	hash, text = Pool{}.Snapshot()
	require.Empty(t, hash+text)
	_, err = read("grid", "{")
	require.Error(t, err)
}

func TestWherePoolsSendHTCJobs(t *testing.T) {
	policy := backend.Policy{
		Schedd:      "usual",
		AllowPools:  []string{"allowed"},
		PoolSecrets: []string{"kinit-secret", "other"},
	}
	secret := func(name string) *v1alpha1.PoolAccount { return &v1alpha1.PoolAccount{SecretName: name} }
	common := &v1alpha1.PoolAccount{From: v1alpha1.AccountCommon}
	for name, c := range map[string]struct {
		pool  v1alpha1.HTCPoolSpec
		wish  v1alpha1.Pool
		want  backend.Target
		words string
	}{
		"nothing":                    {want: backend.Target{Account: backend.Account{Namespace: "ns"}}},
		"the pool's schedd":          {pool: v1alpha1.HTCPoolSpec{Schedd: "one"}, want: backend.Target{Endpoint: schedd.Endpoint{Schedd: "one"}, Account: backend.Account{Namespace: "ns"}}},
		"another collector":          {pool: v1alpha1.HTCPoolSpec{Schedd: "one", Collector: "c"}, want: backend.Target{Endpoint: schedd.Endpoint{Schedd: "one", Collector: "c"}, Account: backend.Account{Namespace: "ns"}}},
		"the usual one by its name":  {pool: v1alpha1.HTCPoolSpec{Schedd: "usual"}, want: backend.Target{Account: backend.Account{Namespace: "ns"}}},
		"one of several":             {pool: v1alpha1.HTCPoolSpec{Schedds: []v1alpha1.ScheddName{"one", "two"}}, wish: v1alpha1.Pool{Schedd: "two"}, want: backend.Target{Endpoint: schedd.Endpoint{Schedd: "two"}, Account: backend.Account{Namespace: "ns"}}},
		"none of several":            {pool: v1alpha1.HTCPoolSpec{Schedds: []v1alpha1.ScheddName{"one", "two"}}, wish: v1alpha1.Pool{Schedd: "three"}, words: "HTCPool grid has no schedd three, but one, two"},
		"one that the flags allow":   {wish: v1alpha1.Pool{Schedd: "allowed"}, want: backend.Target{Endpoint: schedd.Endpoint{Schedd: "allowed"}, Account: backend.Account{Namespace: "ns"}}},
		"one that the flags refuse":  {wish: v1alpha1.Pool{Schedd: "one"}, words: "--allow-pools"},
		"somebody else's collector":  {pool: v1alpha1.HTCPoolSpec{Schedd: "one"}, wish: v1alpha1.Pool{Schedd: "one", Collector: "c"}, words: "spec.pool.collector"},
		"the common account":         {pool: v1alpha1.HTCPoolSpec{Account: common}, want: backend.Target{}},
		"the common account instead": {pool: v1alpha1.HTCPoolSpec{Account: common}, wish: v1alpha1.Pool{SecretName: "other"}, words: "as htcd's own account"},
		"a Secret":                   {pool: v1alpha1.HTCPoolSpec{Account: secret("other")}, want: backend.Target{Account: backend.Account{Namespace: "ns", Secret: "other"}}},
		"another Secret":             {pool: v1alpha1.HTCPoolSpec{Account: secret("other")}, wish: v1alpha1.Pool{SecretName: "kinit-secret"}, words: "with the Secret other"},
		"a Secret that may not be":   {pool: v1alpha1.HTCPoolSpec{Account: secret("any")}, words: "--pool-secrets"},
	} {
		j := job("ns", "grid")
		j.Spec.Pool = &c.wish
		got, err := Pool{"grid", c.pool}.Target(j, policy)
		if c.words != "" {
			require.ErrorContains(t, err, c.words, name)
			require.Equal(t, condor.Refused, condor.KindOf(err), name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, c.want, got, name)
	}
}

func TestAPoolThatIsWrongSaysWhere(t *testing.T) {
	for words, spec := range map[string]v1alpha1.HTCPoolSpec{
		"images: ":                    {Images: []string{"[docker://"}},
		"--namespace-secrets is not":  {Account: &v1alpha1.PoolAccount{SecretName: "any"}},
		`keep.most: found "1h2"`:      {Keep: &v1alpha1.PoolKeep{Most: new(v1alpha1.PoolDuration("1h2"))}},
		"defaults: htcopts, line 1":   {Defaults: &v1alpha1.PoolDefaults{HTCOpts: "+Owner = 1"}},
		`defaults.image: image "A b"`: {Defaults: &v1alpha1.PoolDefaults{Image: "A b"}},
		"defaults.image: image docker://b is not among": {
			Images: []string{"docker://a"}, Defaults: &v1alpha1.PoolDefaults{Image: "b"},
		},
		"defaults.resources": {Defaults: &v1alpha1.PoolDefaults{Resources: &v1alpha1.Resources{CPUs: new(resource.MustParse("-1"))}}},
	} {
		var why *Unusable
		require.ErrorAs(t, Check("grid", spec, Rules{}), &why)
		require.Equal(t, ReasonInvalid, why.Reason)
		require.Contains(t, why.Message, words)
	}
	require.NoError(t, Check("grid", v1alpha1.HTCPoolSpec{}, Rules{}))
}

func TestHowLongHTCJobsAreKept(t *testing.T) {
	d := func(text string) *v1alpha1.PoolDuration { return new(v1alpha1.PoolDuration(text)) }
	keep := &v1alpha1.PoolKeep{Succeeded: d("1h"), Failed: d("1m30s"), Most: d("2h")}
	day := new(int32(86400))
	require.Nil(t, Keep(nil, nil, v1alpha1.PhaseSucceeded))
	require.Equal(t, day, Keep(day, nil, v1alpha1.PhaseSucceeded))
	require.EqualValues(t, 3600, *Keep(nil, keep, v1alpha1.PhaseSucceeded))
	require.EqualValues(t, 90, *Keep(nil, keep, v1alpha1.PhaseFailed))
	require.EqualValues(t, 7200, *Keep(nil, keep, v1alpha1.PhaseRemoved), "most is for all")
	require.EqualValues(t, 7200, *Keep(day, keep, v1alpha1.PhaseSucceeded))
	require.EqualValues(t, 5, *Keep(new(int32(5)), keep, v1alpha1.PhaseSucceeded))
	require.EqualValues(
		t,
		1<<31-1,
		*Keep(nil, &v1alpha1.PoolKeep{Most: d("999999h9999999m999999999s")}, v1alpha1.PhaseFailed),
	)
}

func TestWhatHoldsIsWrittenAndRead(t *testing.T) {
	p := Pool{"grid", v1alpha1.HTCPoolSpec{Defaults: &v1alpha1.PoolDefaults{ActiveDeadlineSeconds: new(int64(9))}}}
	e := p.Effective(
		submit.Requests{
			CPUs:      2,
			Memory:    1536,
			Disk:      1,
			Retries:   new(3),
			Deadlines: condor.Deadlines{HeldDeadline: 4, RunDeadline: 5},
		},
	)
	text, err := json.Marshal(ReadEffective("grid", Write(e)))
	require.NoError(t, err)
	require.JSONEq(
		t,
		`{"pool": "grid", "resources": {"cpus": "2", "memory": "1536Mi", "disk": "1Ki"}, "retries": 3, "heldDeadlineSeconds": 4, "runDeadlineSeconds": 5, "activeDeadlineSeconds": 9}`,
		string(text),
	)
	require.Nil(t, Pool{}.Effective(submit.Requests{CPUs: 2}))
	require.Nil(t, ReadEffective("", ""))
	require.Equal(t, &v1alpha1.Effective{Pool: "lost"}, ReadEffective("lost", "{"))
}
