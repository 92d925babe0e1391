package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/target/credential"
	"htc.cern.ch/htcd/internal/target/secrets"
)

// The APIService of deploy/components/output, and its group.
const (
	outputService = "v1alpha1." + outputGroup
	outputGroup   = "output.htc.cern.ch"
)

// reached asks the apiserver a question that everybody may ask.
func reached(client rest.Interface, host string) Check {
	return Check{Name: "kubernetes", Needs: []string{"kubeconfig"}, Try: func(ctx context.Context) (string, error) {
		text, err := client.Get().AbsPath("/version").DoRaw(ctx)
		var v version.Info
		if err == nil {
			err = json.Unmarshal(text, &v)
		}
		switch {
		case apierrors.IsUnauthorized(err):
			return "", &Trouble{
				host + " does not know this account: " + err.Error(),
				"give it a valid token: htcd's ServiceAccount, or another --kubeconfig",
			}
		case err != nil:
			return "", &Trouble{
				host + " does not answer: " + err.Error(),
				"check the network between here and there, and --kubeconfig",
			}
		}
		return "Kubernetes " + v.GitVersion + " at " + host, nil
	}}
}

// maxSkew is how much Kerberos lets clocks differ (clockskew of krb5.conf).
const maxSkew = 5 * time.Minute

// clock compares this clock with the apiserver's. The KDC and the schedd check it with the same tolerance.
func clock(config *rest.Config, now func() time.Time) Check {
	return Check{Name: "clock", Needs: []string{"kubernetes"}, Try: func(ctx context.Context) (string, error) {
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			return "", err
		}
		request, err := http.NewRequestWithContext(
			ctx,
			http.MethodHead,
			strings.TrimSuffix(config.Host, "/")+"/version",
			nil,
		)
		if err != nil {
			return "", err
		}
		response, err := client.Do(request)
		if err != nil {
			return "", err
		}
		_ = response.Body.Close() // a HEAD has none
		return skew(response.Header.Get("Date"), now())
	}}
}

func skew(date string, now time.Time) (string, error) {
	theirs, err := http.ParseTime(date)
	if err != nil {
		return "", notHere("the apiserver did not report its time")
	}
	// The header has whole seconds, and took time to arrive.
	off := now.Sub(theirs).Round(time.Second)
	if off.Abs() > maxSkew {
		return "", &Trouble{
			fmt.Sprintf("this clock is %s off the apiserver's; Kerberos allows %s", off, maxSkew),
			"set the node's clock (NTP)",
		}
	}
	return fmt.Sprintf("within %s of the apiserver's", max(off.Abs(), time.Second)), nil
}

// schema is the part of an OpenAPI schema that this check reads.
type schema struct {
	Properties map[string]schema `json:"properties"`
	Items      *schema           `json:"items"`                // of a list
	Values     *schema           `json:"additionalProperties"` // of a map
}

// kinds are those that htcd works on.
var kinds = []reflect.Type{
	reflect.TypeFor[v1alpha1.HTCJob](), reflect.TypeFor[v1alpha1.HTCPool](), reflect.TypeFor[v1alpha1.HTCWorkflow](),
}

// crd checks that the apiserver knows every field of this htcd. An older CRD would silently drop the others.
func crd(client rest.Interface) Check {
	group := v1alpha1.GroupVersion
	return Check{Name: "crd", Needs: []string{"kubernetes"}, Try: func(ctx context.Context) (string, error) {
		const do = "kubectl apply -k deploy/base/crd, of the version that htcd has"
		text, err := client.Get().AbsPath("/openapi/v3/apis/" + group.String()).DoRaw(ctx)
		switch {
		case apierrors.IsNotFound(err):
			return "", &Trouble{fmt.Sprintf("the apiserver knows no %s of %s", v1alpha1.Kind, group), do}
		case err != nil:
			return "", &Trouble{
				"the apiserver does not reveal the CRD's schema: " + err.Error(),
				"let this account read /openapi/* (ClusterRole system:discovery)",
			}
		}
		var document struct {
			Components struct {
				Schemas map[string]schema `json:"schemas"`
			} `json:"components"`
		}
		if err := json.Unmarshal(text, &document); err != nil {
			return "", err
		}
		for _, kind := range kinds {
			served, found := schema{}, false
			for name, s := range document.Components.Schemas {
				if strings.HasSuffix(name, "."+kind.Name()) {
					served, found = s, true
				}
			}
			if !found {
				return "", &Trouble{fmt.Sprintf("%s has no %s", group, kind.Name()), do}
			}
			if missing := missingFields(kind, served); len(missing) > 0 {
				return "", &Trouble{
					"the CRD of " + kind.Name() + " is older than htcd: it has no " + strings.Join(missing, ", "),
					do,
				}
			}
		}
		return fmt.Sprintf("HTCJob, HTCPool and HTCWorkflow of %s, with every field of this htcd", group), nil
	}}
}

// missingFields are fields of this htcd that a served schema lacks, in the order of the types.
func missingFields(kind reflect.Type, served schema) []string {
	var missing []string
	var compare func(path string, t reflect.Type, s schema)
	compare = func(path string, t reflect.Type, s schema) {
		switch is := t.Kind(); {
		case is == reflect.Pointer:
			compare(path, t.Elem(), s)
			return
		case is == reflect.Slice && s.Items != nil:
			compare(path, t.Elem(), *s.Items)
			return
		case is == reflect.Map && s.Values != nil:
			compare(path, t.Elem(), *s.Values)
			return
		}
		if t.Kind() != reflect.Struct || !strings.HasSuffix(t.PkgPath(), "/v1alpha1") {
			return
		}
		for i := range t.NumField() {
			name, how, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			if how == "inline" {
				compare(path, t.Field(i).Type, s)
			}
			if name == "" || name == "-" || name == "metadata" {
				continue
			}
			at := strings.TrimPrefix(path+"."+name, ".")
			field, known := s.Properties[name]
			if !known {
				missing = append(missing, at)
				continue
			}
			compare(at, t.Field(i).Type, field)
		}
	}
	compare("", kind, served)
	return missing
}

// output checks that the apiserver forwards users to htcd. A dry-run patch that changes nothing shows the APIService to
// an account that may only patch it. Everybody may see whether there is one; without a server it does harm.
func output(client rest.Interface, listens bool) Check {
	return Check{
		Name:    "output",
		Needs:   []string{"rights"},
		Settles: leads,
		Try: func(ctx context.Context) (string, error) {
			if !listens {
				if client.Get().AbsPath("/apis/"+outputGroup).Do(ctx).Error() == nil {
					return "", &Trouble{
						"there is an APIService " + outputService + ", and this htcd does not answer it (--output-listen is empty): no namespace in the cluster can be deleted",
						"name deploy/components/output in the overlay, or kubectl delete apiservice " + outputService,
					}
				}
				return "", notHere("--output-listen is empty: htcd logs and get-output do not work")
			}
			text, err := client.Patch(
				types.MergePatchType,
			).AbsPath(
				"/apis/apiregistration.k8s.io/v1/apiservices/"+outputService,
			).
				Param(
					"dryRun",
					metav1.DryRunAll,
				).Body(
				[]byte("{}"),
			).DoRaw(
				ctx,
			)
			if apierrors.IsNotFound(err) {
				return "", &Trouble{
					"there is no APIService " + outputService + ": htcd logs and get-output do not work",
					"name deploy/components/output in the overlay, or set --output-listen= to go without it",
				}
			}
			if err != nil {
				return "", err
			}
			return available(text)
		},
	}
}

func available(apiservice []byte) (string, error) {
	var service struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := json.Unmarshal(apiservice, &service); err != nil {
		return "", err
	}
	said := "the apiserver has not checked yet"
	for _, c := range service.Status.Conditions {
		switch {
		case c.Type == "Available" && c.Status == metav1.ConditionTrue:
			return "the apiserver forwards to htcd (APIService " + outputService + ")", nil
		case c.Type == "Available":
			said = c.Reason + ": " + c.Message
		}
	}
	return "", &Trouble{
		"APIService " + outputService + " is not available: " + said,
		"make sure that an htcd works (kubectl -n htcd get pods), and that the apiserver reaches the Service htcd-output; when htcd is to stay away, kubectl delete apiservice " + outputService,
	}
}

// files reads the common account from files into cred.
func files(dir string, cred *credential.Credential) Check {
	return Check{Name: "secret", Try: func(context.Context) (string, error) {
		data, err := secrets.ReadDirectory(dir)
		if err != nil {
			return "", &Trouble{
				"--credential-dir: " + err.Error(),
				"mount the files so that htcd's account may read them",
			}
		}
		if *cred, err = credential.Read(data); err != nil {
			return "", &Trouble{
				"--credential-dir " + dir + ": " + err.Error(),
				"have the files of these names there and nothing else; htcd notices the change by itself",
			}
		}
		return cred.String() + " of " + dir, nil
	}}
}

// secret reads the common account's Secret into cred.
func secret(core kubernetes.Interface, p Place, cred *credential.Credential) Check {
	return Check{Name: "secret", Needs: []string{"kubernetes"}, Try: func(ctx context.Context) (string, error) {
		name := p.Secret + " in namespace " + p.SecretNamespace
		list, err := core.CoreV1().Secrets(p.SecretNamespace).List(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, p.Secret).String(), // what htcd may ask
		})
		if err != nil {
			return "", &Trouble{
				"secret " + name + " cannot be read: " + err.Error(),
				"apply deploy/base/rbac with htcd's namespace",
			}
		}
		if len(list.Items) == 0 {
			do := fmt.Sprintf(
				"kubectl -n %s create secret generic %s --from-literal=username=ACCOUNT --from-file=password=FILE, or --from-file=token=FILE",
				p.SecretNamespace,
				p.Secret,
			)
			if len(p.NamespaceSecrets) > 0 {
				return "", &Trouble{
					"there is no secret " + name + "; only namespaces with a Secret of their own are served, which this check does not cover",
					do,
				}
			}
			return "", &Trouble{"there is no secret " + name, do}
		}
		if *cred, err = credential.Read(list.Items[0].Data); err != nil {
			return "", &Trouble{
				"secret " + name + ": " + err.Error(),
				"put that into it and nothing else; htcd notices the change by itself",
			}
		}
		return cred.String() + " of secret " + name, nil
	}}
}
