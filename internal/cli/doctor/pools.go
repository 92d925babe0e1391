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
			var away []string
			for _, name := range (pool.Pool{Name: p.Name, Spec: p.Spec}).Schedds() {
				if _, err := htcondor.Ping(
					ctx,
					id.At(schedd.Endpoint{Collector: p.Spec.Collector, Schedd: name}),
					schedd.Reading,
				); err != nil {
					away = append(away, fmt.Sprintf("schedd %s: %v", name, err))
				}
			}
			if len(away) > 0 {
				return "", scheddTrouble("HTCPool "+p.Name+": ", fmt.Errorf("%s", strings.Join(away, "; ")))
			}
		}
		return fmt.Sprintf("%d HTCPools, whose schedds answer", len(list.Items)), nil
	}}
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
