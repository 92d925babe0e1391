package reconciler

import (
	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/inputs/jobcredentials"
)

// Freshness returns what watches whether the credentials of objects' jobs are valid; of returns those that matter now.
func (r *Reconciler[O, S, K]) Freshness(
	from inputs.Secrets, of func(O) []jobcredentials.Credential,
) *jobcredentials.Watch {
	return &jobcredentials.Watch{
		Secrets: from, Changed: r.Changed.Add, Served: jobcredentials.Served(r.o.Site.CallbackURL), Now: r.o.Now,
		Holders: func() (all []jobcredentials.Holder) {
			for _, object := range r.All() {
				if object.GetDeletionTimestamp() != nil {
					continue
				}
				if credentials := of(object); len(credentials) > 0 {
					all = append(all, jobcredentials.Holder{
						Key: keyOf(object), UID: string(object.GetUID()), Namespace: object.GetNamespace(),
						Credentials: credentials,
					})
				}
			}
			return all
		},
	}
}
