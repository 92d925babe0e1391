package doctor

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Right is one verb on one resource, in a namespace (empty: in all, or the resource has none), of a name (empty: any).
type Right struct{ Verb, Group, Resource, Subresource, Namespace, Name string }

// Place is where htcd works: the subjects and namespaces of deploy/base/rbac.
type Place struct {
	Watched         string // the namespace whose HTCJobs are run; empty: all
	Own             string // htcd's own
	Lease           string
	Secret          string // the name of the common account's Secret
	SecretNamespace string
	CredentialDir   string // has that account in files instead; empty: it is in the Secret
	// NamespaceSecrets are the names of Secrets that are read in the namespaces of HTCJobs.
	NamespaceSecrets []string
	Elect            bool // a Lease is taken
	Output           bool // the output of jobs is served to the apiserver
	LogsPods         bool // spec.logsPod leaves Pods
	Kueue            bool // HTCJobs may wait for quota of Kueue
	StandsBy         bool // of several htcds the active one has a label
}

// Rights are the rights that htcd needs; a test compares them with deploy/.
func Rights(p Place) []Right {
	var all []Right
	add := func(group, resource, subresource, namespace, name string, verbs ...string) {
		for _, verb := range verbs {
			all = append(all, Right{verb, group, resource, subresource, namespace, name})
		}
	}
	for _, kind := range []string{"htcjobs", "htcworkflows"} {
		add("htc.cern.ch", kind, "", p.Watched, "", "get", "list", "watch", "patch", "delete")
		add("htc.cern.ch", kind, "status", p.Watched, "", "patch")
	}
	add("htc.cern.ch", "htcpools", "", "", "", "list", "watch")
	add("htc.cern.ch", "htcpools", "status", "", "", "patch")
	add("", "namespaces", "", "", "", "list", "watch")
	add("events.k8s.io", "events", "", p.Watched, "", "create", "patch")
	add("", "configmaps", "", p.Watched, "", "get")
	if p.Output {
		add("", "configmaps", "", "kube-system", "extension-apiserver-authentication", "list", "watch")
		add("apiregistration.k8s.io", "apiservices", "", "", outputService, "patch")
		add("authorization.k8s.io", "subjectaccessreviews", "", "", "", "create")
	}
	if p.CredentialDir == "" {
		add("", "secrets", "", p.SecretNamespace, p.Secret, "list", "watch")
	}
	for _, name := range p.NamespaceSecrets {
		add("", "secrets", "", p.Watched, name, "list", "watch", "patch")
	}
	if p.LogsPods {
		add("", "pods", "", p.Watched, "", "get", "create", "delete")
		add("", "configmaps", "", p.Watched, "", "get", "create", "delete")
	}
	if p.Kueue {
		add("kueue.x-k8s.io", "workloads", "", p.Watched, "", "create", "delete", "list", "patch", "watch")
		add("kueue.x-k8s.io", "workloads", "status", p.Watched, "", "patch")
		add("kueue.x-k8s.io", "workloadpriorityclasses", "", "", "", "get")
	}
	if p.StandsBy {
		add("", "pods", "", p.Own, "", "patch")
	}
	if p.Elect {
		add("coordination.k8s.io", "leases", "", p.Own, "", "create")
		add("coordination.k8s.io", "leases", "", p.Own, p.Lease, "get", "update")
	}
	return all
}

// rights asks the apiserver about each; everybody may ask about themselves.
func rights(core kubernetes.Interface, p Place) Check {
	return Check{Name: "rights", Needs: []string{"kubernetes"}, Try: func(ctx context.Context) (string, error) {
		var missing []string
		wanted := Rights(p)
		for _, r := range wanted {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Verb:        r.Verb,
					Group:       r.Group,
					Resource:    r.Resource,
					Subresource: r.Subresource,
					Namespace:   r.Namespace,
					Name:        r.Name,
				},
			}}
			answer, err := core.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			if err != nil {
				return "", &Trouble{"the apiserver does not tell what this account may do: " + err.Error(),
					"let it create selfsubjectaccessreviews (ClusterRole system:basic-user)"}
			}
			if !answer.Status.Allowed {
				missing = append(missing, r.String())
			}
		}
		if len(missing) > 0 {
			return "", &Trouble{
				"not allowed: " + strings.Join(missing, "; "),
				"apply deploy/base/rbac with htcd's namespace; for Secrets of namespaces, Pods of spec.logsPod and users' output, what is in deploy/components",
			}
		}
		return fmt.Sprintf("all %d that htcd needs", len(wanted)), nil
	}}
}

// String is the right in the words of kubectl auth can-i.
func (r Right) String() string {
	s := r.Verb + " " + r.Resource
	if r.Group != "" {
		s += "." + r.Group
	}
	if r.Subresource != "" {
		s += "/" + r.Subresource
	}
	if r.Name != "" {
		s += " " + r.Name
	}
	if r.Namespace != "" {
		s += " in " + r.Namespace
	}
	return s
}
