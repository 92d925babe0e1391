package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // authentication plugins that a kubeconfig may name
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

// Exit ends the program with a code of its own, and no further words.
type Exit struct{ Code int }

func (e Exit) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// exitInterrupted is the code by which a shell shows SIGINT.
const exitInterrupted = 130

// Commands are all commands for users.
func Commands() []*cobra.Command {
	all := []*cobra.Command{
		submitCommand(),
		convertCommand(),
		statusCommand(),
		waitCommand(),
		listCommand(),
		cancelCommand(),
		rerunCommand(),
		deleteCommand(),
		logsCommand(),
		topCommand(),
		execCommand(),
		portForwardCommand(),
		getOutputCommand(),
		nodesCommand(),
		graphCommand(),
		historyCommand(),
		uploadCommand(),
		uiCommand(),
		completionCommand(),
	}
	for _, c := range all {
		c.SetFlagErrorFunc(
			func(_ *cobra.Command, err error) error { return setting.Usage{Err: setting.Explain(err, "")} },
		)
	}
	return all
}

// Connection holds the flags for the cluster, as in kubectl.
type Connection struct{ kubeconfig, context, namespace string }

// Flags defines the flags.
func (c *Connection) Flags(f *pflag.FlagSet) { c.flags(f, setting.Namespace) }

func (c *Connection) flags(f *pflag.FlagSet, namespace setting.Kind) {
	setting.Text(
		f,
		&c.kubeconfig,
		"kubeconfig",
		"",
		setting.Path,
		"kubeconfig `file`; empty: $KUBECONFIG, else ~/.kube/config",
	)
	setting.Text(f, &c.context, "context", "", setting.Word, "`name` of the kubeconfig's context to use")
	setting.Text(f, &c.namespace, "namespace,n", "", namespace, "`namespace`; empty: the context's")
}

// cluster is where the HTCJobs and HTCWorkflows of a namespace are.
type cluster struct {
	namespace  string
	resource   string           // whose output is read
	objects    *v1alpha1.Client // of every namespace
	core       typedcorev1.CoreV1Interface
	jobs       store
	workflows  store
	configMaps typedcorev1.ConfigMapInterface
	base       *url.URL
	http       *http.Client
	coming     delay    // with output that is on its way
	starting   delay    // where no htcd answers
	dryRun     []string // of what is applied: the apiserver checks it and keeps nothing
}

// Config returns how to reach the apiserver, and the namespace.
func (c *Connection) Config() (config *rest.Config, namespace string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	overrides := clientcmd.ConfigOverrides{CurrentContext: c.context}
	overrides.Context.Namespace = c.namespace
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &overrides)
	if config, err = loader.ClientConfig(); err != nil {
		return nil, "", err
	}
	namespace, _, err = loader.Namespace()
	return config, namespace, err
}

// open returns the cluster. While a command waits there, it explains the wait on warnings.
func (c *Connection) open(warnings io.Writer) (*cluster, error) {
	config, namespace, err := c.Config()
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	objects, err := v1alpha1.NewClientForHTTP(config, client)
	if err != nil {
		return nil, err
	}
	binary := rest.CopyConfig(config)
	binary.ContentType = runtime.ContentTypeProtobuf // JSON can take six times the size of a file
	core, err := typedcorev1.NewForConfigAndClient(binary, client)
	if err != nil {
		return nil, err
	}
	return &cluster{namespace: namespace, resource: v1alpha1.Resource, objects: objects, core: core,
		jobs: typed[*v1alpha1.HTCJob, *v1alpha1.HTCJobList]{objects.HTCJobs(namespace), &v1alpha1.HTCJob{}},
		workflows: typed[*v1alpha1.HTCWorkflow, *v1alpha1.HTCWorkflowList]{
			objects.Workflows(namespace),
			&v1alpha1.HTCWorkflow{},
		},
		configMaps: core.ConfigMaps(namespace), base: base, http: client,
		coming: delay{most: fetchTakes, warnings: warnings}, starting: delay{most: startTakes, warnings: warnings}}, nil
}

// fetchTakes is the longest wait for the output of a job that has ended; usually it takes 2 s.
const fetchTakes = 30 * time.Second

// startTakes is the longest wait for another htcd, which takes the place of one that has ended within some seconds.
const startTakes = 20 * time.Second

// delay is the waiting that a command allows, once, however many jobs it asks about.
type delay struct {
	most     time.Duration
	warnings io.Writer
	begin    sync.Once
	until    time.Time
}

// left reports whether any of it remains, and says why it is needed when it begins.
func (d *delay) left(why string) bool {
	d.begin.Do(func() {
		if d.until = time.Now().Add(d.most); d.most > 0 {
			fmt.Fprintf(d.warnings, "%s: waiting up to %s\n", why, d.most)
		}
	})
	return time.Now().Before(d.until)
}

// comes reports whether to wait for the output of a job that has ended.
func (c *cluster) comes(name string) bool {
	return c.coming.left("a job of " + name + " has ended and its output is being fetched")
}

// output requests a job's output, and again while that is on its way. The caller closes it.
func (c *cluster) output(ctx context.Context, name, what string, parameters url.Values) (*http.Response, error) {
	for {
		response, err := c.ask(ctx, name, what, parameters)
		seconds, later := apierrors.SuggestsClientDelay(err)
		if err == nil || !later || !apierrors.IsConflict(err) || !c.comes(name) {
			return response, err
		}
		if err := pauseFor(ctx, time.Duration(seconds)*time.Second); err != nil {
			return nil, err
		}
	}
}

func (c *cluster) ask(ctx context.Context, name, what string, parameters url.Values) (*http.Response, error) {
	return c.askOf(ctx, c.namespace, c.resource, name, what, parameters)
}

func (c *cluster) askOf(
	ctx context.Context,
	namespace, resource, name, what string,
	parameters url.Values,
) (*http.Response, error) {
	return c.askAt(ctx, namespace, parameters, resource, name, what)
}

// askAt requests what is at a path of a namespace, or of all of them, and again while htcd starts.
func (c *cluster) askAt(
	ctx context.Context,
	namespace string,
	parameters url.Values,
	path ...string,
) (*http.Response, error) {
	for {
		response, err := c.send(ctx, http.MethodGet, namespace, parameters, nil, path...)
		if !unanswered(err) || !c.starting.left("no htcd answers at present") {
			return response, err
		}
		if err := pauseFor(ctx, firstPause); err != nil {
			return nil, err
		}
	}
}

// send is askAt with another method, and a body.
func (c *cluster) send(
	ctx context.Context,
	method, namespace string,
	parameters url.Values,
	body io.Reader,
	path ...string,
) (*http.Response, error) {
	u := c.base.JoinPath("apis", aggregate.GroupVersion.Group, aggregate.GroupVersion.Version)
	if namespace != "" {
		u = u.JoinPath("namespaces", namespace)
	}
	u = u.JoinPath(path...)
	u.RawQuery = parameters.Encode()
	request, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return nil, err
	}
	if part, is := body.(*io.SectionReader); is {
		request.ContentLength = part.Size()
	}
	response, err := c.http.Do(request)
	if err != nil || response.StatusCode == http.StatusOK || response.StatusCode == http.StatusNoContent {
		return response, err
	}
	defer response.Body.Close()
	const mostWords = 64 << 10
	words, _ := io.ReadAll(io.LimitReader(response.Body, mostWords))
	return nil, refusal(response.StatusCode, words)
}

// noneAnswers is all that is known on this side: the apiserver forwards to no htcd, for whatever reason.
const noneAnswers = "no htcd answers at present, so output cannot be read; jobs go on, and what they leave waits at the schedd for 10 days. Try again later. " +
	"Its administrator can find the cause with: kubectl -n htcd describe pods (does one exist, does its image start, is it ready?)"

// refusal is an error answer of the apiserver or htcd.
func refusal(code int, words []byte) error {
	var status metav1.Status
	if json.Unmarshal(words, &status) != nil || status.Kind != "Status" || status.Message == "" {
		status = metav1.Status{Message: strings.TrimSpace(string(words))}
	}
	status.Status, status.Code = metav1.StatusFailure, int32(code) // #nosec G115 -- three digits
	switch {
	case code == http.StatusNotFound && status.Reason != metav1.StatusReasonNotFound,
		code == http.StatusNotFound && status.Details != nil && status.Details.Kind == "" && status.Details.Name == "":
		status.Message = "this cluster serves no output of HTCJobs: its administrator may name deploy/components/output of htcd in the overlay"
	case code == http.StatusServiceUnavailable && status.Reason != metav1.StatusReasonServiceUnavailable || status.Message == "service unavailable":
		status.Message = noneAnswers
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// pauseFor waits that long, unless ctx ends before.
func pauseFor(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// unanswered reports whether an error says that no htcd answers.
func unanswered(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Message == noneAnswers
}

// passing reports whether an error may be gone next time.
func passing(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return !errors.Is(err, context.Canceled) && !errors.As(err, new(errHere))
	}
	code := status.Status().Code
	return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
}

// arguments requires that number of arguments.
func arguments(n int, names string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return setting.Usage{Err: fmt.Errorf("%s: want %s, not %d arguments", cmd.CommandPath(), names, len(args))}
		}
		return nil
	}
}
