package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/pool"
)

// pools checks each HTCPool: what its administrator wrote, and that its schedds answer.
func pools(client rest.Interface, htcondor *schedd.Client, rules pool.Rules, id *schedd.Identity) Check {
	return Check{Name: "pools", Needs: []string{"crd", "schedd"}, Try: func(ctx context.Context) (string, error) {
		text, err := client.Get().
			AbsPath("/apis/" + v1alpha1.GroupVersion.String() + "/" + v1alpha1.PoolResource).
			DoRaw(ctx)
		if apierrors.IsForbidden(err) {
			return "", &Trouble{"htcd may not list HTCPools: " + err.Error(), "apply deploy/base/rbac of this version"}
		}
		var list v1alpha1.HTCPoolList
		if err == nil {
			err = json.Unmarshal(text, &list)
		}
		if err != nil {
			return "", err
		}
		if len(list.Items) == 0 {
			return "there are no HTCPools: htcd's flags decide alone", nil
		}
		if trouble := wrongPools(list.Items, rules); trouble != nil {
			return "", trouble
		}
		for _, p := range list.Items {
			err := away(p, func(name string) error {
				at := id.At(schedd.Endpoint{Collector: p.Spec.Collector, Schedd: name})
				_, err := htcondor.Ping(ctx, at, schedd.Reading)
				return err
			})
			if err != nil {
				return "", scheddTrouble("HTCPool "+p.Name+": ", err)
			}
		}
		return fmt.Sprintf("%d HTCPools, whose schedds answer", len(list.Items)), nil
	}}
}

// away says which of a pool's schedds cannot be used. They are asked as the common account: where the namespaces' own
// ones send, a refusal is an answer.
func away(p v1alpha1.HTCPool, ping func(schedd string) error) (all error) {
	account := p.Spec.Account
	others := account != nil && (account.SecretName != "" || account.From == v1alpha1.AccountFromNamespace)
	for _, name := range (pool.Pool{Name: p.Name, Spec: p.Spec}).Schedds() {
		err := ping(name)
		kind := condor.KindOf(err)
		switch refused := kind == condor.NotAuthorised || kind == condor.Credentials; {
		case err == nil, others && refused:
			continue
		case all == nil:
			all = fmt.Errorf("schedd %s: %w", name, err)
		default:
			all = fmt.Errorf("%w; schedd %s: %w", all, name, err)
		}
	}
	return all
}

// wrongPools finds what can be seen without asking HTCondor; nil: nothing.
func wrongPools(all []v1alpha1.HTCPool, rules pool.Rules) error {
	var defaults []string
	for _, p := range all {
		if err := pool.Check(p.Name, p.Spec, rules); err != nil {
			return &Trouble{err.Error(), "kubectl edit htcpool " + p.Name}
		}
		if p.Spec.Default {
			defaults = append(defaults, p.Name)
		}
	}
	if len(defaults) > 1 {
		return &Trouble{
			"several HTCPools are the default: " + strings.Join(defaults, ", ") + "; the oldest is used",
			"set spec.default: false in all but one",
		}
	}
	return nil
}
